"""Packets: captures, live interfaces, the flow table and connections."""
