"""The data of one person: as a file (GDPR, article 15), and erased (article 17).

Each slice says what it holds (`Slice.personal_data`). Begin with `erasing.py`, the job that erases, and
`export.py`,
which writes the file; docs/decisions/0182 says what stays, and why.
"""
