"""Screens of automations: list, graph with its runs, one run, simulation, editor, versions, recipes.

Begin with `automation_page.py`; `graph_layout.py` places the steps and `graph_svg.py` draws them.
"""
