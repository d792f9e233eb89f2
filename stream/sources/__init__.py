"""Where records come from: files, sockets, captures, interfaces, Zeek and Suricata, all through one protocol."""
