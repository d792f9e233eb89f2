"""The models that come with netclust, and their loader. `netclust.models.shipped` makes them."""
