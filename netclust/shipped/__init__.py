"""The models that come with netclust, and their loader. `netclust.models.network.make_shipped` makes them."""
