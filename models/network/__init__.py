"""The network task: training, tuning and measuring a model of connection records."""
