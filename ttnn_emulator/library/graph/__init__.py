"""`ttnn.graph`: captured graphs and the Python calls behind them."""
