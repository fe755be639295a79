"""`pillarbox contacts`. Begin in `contacts`: the commands and their options; each has a module of its own."""
