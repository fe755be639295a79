"""Acts of the first steps on the overview: a key for the first mail, and putting them away."""

from __future__ import annotations

from pillarbox.dashboard.frame.screens import act
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.overview.overview_screen import HERE, overview_page
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.teams.current_team import by
from pillarbox.dashboard.texts import t
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.security.authentication import Permission
from pillarbox.people.membership import members, team_keys
from pillarbox.people.membership.team_keys import WantedKey
from pillarbox.people.roles import Right
from pillarbox.teams.allowances import Allowances, TooMany


@act("/dashboard/first-steps/key", title="steps.key", right=Right.USE, back=HERE, confirm=True)
async def make_key(visit: Visit, _: Form) -> Reply[Html]:
    """Make a key that only sends mail, and show it once, in the code of the first mail."""
    request = visit.request
    overview = Visit(request, visit.visitor, HERE, "overview.title")
    wanted = WantedKey(t("steps.key_name"), Permission.SENDING, None)
    try:
        made = await team_keys.make(
            visit.db, by(request, visit.visitor), request.use(Ids), request.use(Allowances), wanted
        )
    except TooMany as refused:
        return await overview_page(overview, status=refused.status, problem=t("keys.too_many"))
    if made is None:
        return await overview_page(overview, status=403, problem=t("team.not_allowed"))
    return await overview_page(overview, token=made.token)


@act("/dashboard/first-steps/hide", title="steps.hide", right=Right.VIEW, back=HERE)
async def hide(visit: Visit, _: Form) -> Reply[Html]:
    """Put the first steps away, for this person in this team."""
    await members.hide_first_steps(visit.db, visit.visitor.person_id)
    return visit.to(HERE, done="first_steps_hidden")
