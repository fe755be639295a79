"""Commands for received mail."""
