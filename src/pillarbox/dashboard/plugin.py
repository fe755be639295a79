"""The slice of the dashboard: the pages that are shown to people, and the processes that draw them."""

from __future__ import annotations

from collections.abc import Sequence

from pillarbox.dashboard import icon
from pillarbox.dashboard.automations import (
    automation_list,
    automation_page,
    editor,
    json_forms,
    recipe_page,
    run_page,
    simulation_page,
    versions_page,
)
from pillarbox.dashboard.broadcasts import broadcast_list, broadcast_page, heat_list
from pillarbox.dashboard.consent import pages as consent_pages
from pillarbox.dashboard.consent.pages import ConsentPages
from pillarbox.dashboard.contact import contact_page, person_acts
from pillarbox.dashboard.contact_properties import property_screens
from pillarbox.dashboard.contacts import bulk_screens, contact_list
from pillarbox.dashboard.docs import doc_pages, request_form
from pillarbox.dashboard.docs.doc_pages import Documentation
from pillarbox.dashboard.domains import domain_list, domain_page, domain_settings
from pillarbox.dashboard.editor import (
    broadcast_editor,
    image_list,
    template_details,
    template_editor,
    template_list,
    theme_page,
)
from pillarbox.dashboard.emails import (
    email_acts,
    email_csv,
    email_list,
    email_page,
    received_list,
    received_page,
    send_form,
)
from pillarbox.dashboard.emails.email_acts import CopiesInMemory
from pillarbox.dashboard.events import event_list, latest_events
from pillarbox.dashboard.events import event_page as team_event_page
from pillarbox.dashboard.forms import form_editor, form_list, form_page
from pillarbox.dashboard.frame import assets, design, live, search
from pillarbox.dashboard.frame.live import LiveStreams
from pillarbox.dashboard.frame.screen_table import ScreenTable, screens_of
from pillarbox.dashboard.imports import column_mapping, import_list, import_page
from pillarbox.dashboard.inboxes import conversation, drafts, inbox_list, inbox_settings, thread_list
from pillarbox.dashboard.installation import (
    acts,
    examination,
    glance,
    queue,
    setting_list,
)
from pillarbox.dashboard.installation import teams as all_teams
from pillarbox.dashboard.installation.facts import InstallationFacts, facts_of
from pillarbox.dashboard.logs import log_list, log_page
from pillarbox.dashboard.metrics import metrics_screen
from pillarbox.dashboard.overview import first_mail, overview_screen
from pillarbox.dashboard.page_work import PageWork
from pillarbox.dashboard.people import (
    account,
    account_address,
    account_factors,
    confirm,
    login,
    login_factor,
    lost_password,
    openid,
    page_language,
    scripts,
    set_up,
)
from pillarbox.dashboard.segments import segment_screens
from pillarbox.dashboard.shared import SharedPages
from pillarbox.dashboard.signing_up import SigningUpPages
from pillarbox.dashboard.suppressions import suppression_list, suppression_page
from pillarbox.dashboard.teams import (
    inviting,
    joining,
    keys,
    log,
    overview,
    people_of_team,
    programs,
    unsubscribe_page,
)
from pillarbox.dashboard.topics import topic_screens
from pillarbox.dashboard.unsubscribing import UnsubscribePages
from pillarbox.dashboard.webhooks import event_page, signature_page, webhook_list, webhook_page
from pillarbox.doctor.examination_runs import ExaminationRunner
from pillarbox.emails.sharing.shared_page import SharedScreens
from pillarbox.forms.screens import SignUpScreens
from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres import time_limit
from pillarbox.kernel.slices import Background, Container, Slice, Stop
from pillarbox.oauth.screens import OAuthScreens
from pillarbox.tracking.screens import TrackingScreens
from pillarbox.unsubscribe.screens import UnsubscribeScreens


def _background(kit: Container) -> Sequence[Background]:
    work, streams = kit.need(PageWork), kit.need(LiveStreams)

    async def close(_: float) -> None:
        work.close()

    runner = kit.need(ExaminationRunner)
    return [
        Background(closing=streams.close, stop=(Stop.THREADS, close)),
        Background(stop=(Stop.JOBS, runner.close)),
        Background(stop=(Stop.JOBS, time_limit.all_ended)),
    ]


PAGES = collect(
    broadcast_list,
    broadcast_page,
    heat_list,
    login,
    login_factor,
    page_language,
    set_up,
    lost_password,
    confirm,
    account,
    account_address,
    account_factors,
    openid,
    scripts,
    icon,
    overview,
    people_of_team,
    inviting,
    joining,
    keys,
    programs,
    log,
    unsubscribe_page,
    consent_pages,
    form_list,
    form_page,
    form_editor,
    import_list,
    column_mapping,
    import_page,
    assets,
    design,
    search,
    live,
    glance,
    queue,
    all_teams,
    examination,
    setting_list,
    acts,
    overview_screen,
    first_mail,
    email_acts,
    email_csv,
    email_list,
    email_page,
    received_list,
    received_page,
    webhook_list,
    webhook_page,
    event_page,
    signature_page,
    log_list,
    log_page,
    domain_list,
    domain_page,
    domain_settings,
    suppression_list,
    suppression_page,
    metrics_screen,
    send_form,
    contact_list,
    bulk_screens,
    contact_page,
    segment_screens,
    person_acts,
    topic_screens,
    property_screens,
    automation_list,
    automation_page,
    run_page,
    simulation_page,
    editor,
    versions_page,
    json_forms,
    recipe_page,
    event_list,
    team_event_page,
    latest_events,
    template_list,
    template_editor,
    template_details,
    theme_page,
    image_list,
    broadcast_editor,
    inbox_list,
    inbox_settings,
    thread_list,
    conversation,
    drafts,
    doc_pages,
    request_form,
)


def _examination_runner(kit: Container) -> ExaminationRunner:
    ids = kit.need(Ids)
    return ExaminationRunner(kit.pool, ids.now, ids.new)


def _screen_table(kit: Container) -> ScreenTable:
    return ScreenTable(screens_of([page.handler for page in PAGES]), kit.settings.public_url)


SLICE = Slice(
    name="dashboard",
    provides={
        PageWork: lambda _: PageWork(),
        ScreenTable: _screen_table,
        CopiesInMemory: lambda _: CopiesInMemory(),
        LiveStreams: lambda kit: LiveStreams(kit.pool, kit.clock),
        Documentation: lambda _: Documentation(),
        InstallationFacts: facts_of,
        ExaminationRunner: _examination_runner,
        SharedScreens: lambda kit: SharedPages(kit.need(PageWork)),
        SignUpScreens: lambda _: SigningUpPages(),
        UnsubscribeScreens: lambda _: UnsubscribePages(),
        OAuthScreens: lambda _: ConsentPages(),
        TrackingScreens: lambda _: UnsubscribePages(),
    },
    pages=PAGES,
    background=_background,
)
