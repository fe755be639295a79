"""What inboxes need of received mail: as messages of threads, and as originals of replies and forwards."""
