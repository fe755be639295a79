"""What commands are made of: reaching the database, answering, loading a command when it is called."""
