"""Links by which recipients leave a topic, or everything, and the page behind them."""
