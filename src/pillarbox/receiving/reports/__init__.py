"""Reports about mail we sent: bounces and complaints, and what follows from them.

Begin with `return_path.py`.
"""
