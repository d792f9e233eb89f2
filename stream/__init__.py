"""What runs on a live stream. So far: alerts, which turn clusters into what an operator sees."""
