"""The slice of sign-up forms."""

from __future__ import annotations

from pillarbox.contacts.store import Contacts
from pillarbox.emails.accept import Accept
from pillarbox.emails.requests.templating import TemplateRendering
from pillarbox.forms import public_routes, routes
from pillarbox.forms.changes import FormChanges
from pillarbox.forms.confirming import Confirmations
from pillarbox.forms.personal_data import PERSONAL_DATA
from pillarbox.forms.retention import KEPT, SignUpRetention
from pillarbox.forms.sign_up_pages import SignUpPages
from pillarbox.forms.submissions import Submissions
from pillarbox.forms.views import ShownCounts
from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.slices import Container, Retention, RetentionItem, Slice
from pillarbox.suppressions.erased_addresses import ErasedAddresses


def _submissions(kit: Container) -> Submissions:
    return Submissions(
        pool=kit.pool,
        ids=kit.need(Ids),
        accept=kit.need(Accept),
        templating=kit.need(TemplateRendering),
        pages=kit.need(SignUpPages),
        erased=kit.need(ErasedAddresses),
    )


SLICE = Slice(
    name="forms",
    provides={
        FormChanges: lambda kit: FormChanges(kit.need(Ids)),
        SignUpPages: lambda kit: SignUpPages(kit.settings.public_url),
        Submissions: _submissions,
        Confirmations: lambda kit: Confirmations(kit.pool, kit.clock, kit.need(Contacts)),
        ShownCounts: lambda kit: ShownCounts(kit.clock),
        SignUpRetention: lambda kit: SignUpRetention(kit.pool, kit.clock),
    },
    routes=collect(routes),
    pages=collect(public_routes),
    retention=[
        Retention(
            [RetentionItem("sign-ups that nobody confirmed, after the end of their link", KEPT)],
            lambda kit: kit.need(SignUpRetention).periodic(),
        )
    ],
    personal_data=PERSONAL_DATA,
)
