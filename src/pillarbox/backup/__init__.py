"""Backups of an installation: made while it runs, checked, restored, and tried (docs/guide/backup.md).

A target is a folder or a prefix of a bucket. Each backup in it is a folder of its own; the blobs are shared:

    backups/20261122T151000.204816Z-4f2a/   one backup, named by its time:
        database.dump   pg_dump's custom format, of one snapshot
        blobs.index     a line per blob that the snapshot names: key, size, SHA-256
        keys.json       the key ring, encrypted with a passphrase; may be left out
        manifest.json   what belongs to the backup, with checksums; written last
    blobs/…             the blobs, laid out as in any blob store

A backup without a manifest is none. In a folder it has a name that begins with a dot until then.

`make` makes one, `check` reads all of one, `restore` brings one into an empty place, `drill` tries that
beside the running server. What was open when a backup was made may have been done since: a restore puts
it aside (`restored`), and the operator decides. Begin with `make.py` and `restore.py`.
"""
