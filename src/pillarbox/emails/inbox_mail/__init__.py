"""What inboxes need of sent emails: as messages of threads, as originals of replies and forwards, and by the
draft that they were made of."""
