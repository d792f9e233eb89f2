"""Message buses: Kafka, NATS JetStream and Redis streams behind one small protocol, and what netclust says on them."""
