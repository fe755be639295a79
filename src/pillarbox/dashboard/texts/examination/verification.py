"""Gaps of `pillarbox verify`: they are recognised by these texts, and said in the language of the page.

A key has the name of the gap, and a word behind it where a gap has several sentences. The texts of `any` are
sought for every gap, and those of secrets in `checks.py` too. A test compares them with the invariants.
"""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "gap.team_without_owner": "The team {team_id} has {members} members, and no owner among them.",
    "gap.member_without_person": "The member {id} of the team {team_id} is the person {person_id}, who is "
    "not there.",
    "gap.credential_without_person": "There is a {kind} of the person {person_id}, who is not there.",
    "gap.second_factor_without_seed": "The person {id} has confirmed a second factor, and there is no "
    "seed of it.",
    "gap.oauth_grant_half_revoked": "The grant {id} has a reason and no time at which it was revoked, or "
    "a time and no reason.",
    "gap.oauth_grant_of_no_member": "The grant {id} is live, and the person {person_id} who gave it is "
    "not in the team {team_id}.",
    "gap.oauth_grant_of_disabled_client": "The grant {id} is live, and its program {client_id} is disabled.",
    "gap.oauth_token_without_grant": "There is a {kind} of the grant {id}, which is not there.",
    "gap.oauth_several_refresh_tokens": "The grant {id} has {tokens} refresh tokens that may be used; "
    "each use makes one of one.",
    "gap.email_without_content": "The email's content {content_id} is missing.",
    "gap.email_without_recipients": "The email has no recipients.",
    "gap.email_without_opening": "The email's history has no entry of its acceptance.",
    "gap.recipient_without_email": "The recipient at position {position} belongs to an email that is "
    "missing.",
    "gap.recipient_without_work": "The recipient at position {position} is {state}, but no work item "
    "carries group {grp}.",
    "gap.recipient_differs_from_history": "The recipient at position {position} is {state}, but its "
    "history says otherwise ({history}).",
    "gap.last_event_differs_from_history": "The email's last event is {last_event}, but its history says "
    "{kind}.",
    "gap.history_without_email": "The history entry {id} ({kind}) belongs to an email that is missing.",
    "gap.history_without_recipient": "The history entry {id} ({kind}) is about position {position}, where "
    "there is no recipient.",
    "gap.work_without_email": "The work item of group {grp} ({destination}) belongs to an email that is "
    "missing.",
    "gap.work_without_open_recipient": "The work item of group {grp} ({destination}) has nobody left to "
    "deliver to.",
    "gap.work_without_fetch": "The work item of group {grp} waits for an attachment, but nothing fetches it.",
    "gap.attachment_missing": "The content {id} has {wanted} attachments, of which {stored} are stored.",
    "gap.attachment_without_content": "The attachment {id} belongs to the content {content_id}, which is "
    "missing.",
    "gap.attachment_without_bytes": "The attachment {id} should have {size} bytes, but they are not there.",
    "gap.answer_without_email": "The answer kept for the idempotency key {key} names the email "
    "{email_id}, which is missing.",
    "gap.delivery_quarantined": "The email {email_id} (group {grp}) is put aside, so nothing sends it: "
    "{reason}",
    "gap.metric_differs_from_history": "In the quarter hour from {start}Z the metric {metric} is "
    "{written}, but the history counts {counted}.",
    "gap.rollup_levels_differ": "On {day} the rollups of level {level} are not the sum of those of "
    "quarter hours.",
    "gap.event_without_delivery": "Of {happened} events {kind} at {at}Z the webhook {webhook_id} has "
    "{stored}.",
    "gap.body_without_delivery": "The event {event_id} ({kind}) was told to webhooks, but {webhook_id} "
    "has no row of it.",
    "gap.delivery_without_body": "The event {event_id} ({kind}) of the webhook {webhook_id} has nothing "
    "that its body is made of.",
    "gap.delivery_open_and_ended": "The event {event_id} ({kind}) of the webhook {webhook_id} is open and "
    "has ended as {status}.",
    "gap.success_without_attempt": "The event {event_id} ({kind}) reached the webhook {webhook_id}, but "
    "no attempt of that is kept.",
    "gap.delivery_out_of_reach": "The event {event_id} ({kind}) is due at {due_at}, so nothing tells it "
    "to the webhook {webhook_id}.",
    "gap.received_without_message": "The received email {id} has no message, or its message has no email.",
    "gap.received_attachments_differ": "The received email {id} has {wanted} attachments, of which "
    "{stored} are stored.",
    "gap.suppression_not_comparable": "The suppression {id} has an address in a form that no recipient is "
    "compared with.",
    "gap.manual_suppression_with_source": "The suppression {id} is manual and names the email {email_id} "
    "as its cause.",
    "gap.suppression_without_cause": "The suppression {id} is there for a {origin} that its email "
    "{email_id} does not show.",
    "gap.member_without_contact": "The segment {segment_id} has a member {contact_id} that is no contact.",
    "gap.engagement_without_contact": "Engagement is kept of {contact_id}, which is no contact.",
    "gap.terms_without_contact": "Terms are kept of {contact_id}, which is no contact.",
    "gap.event_without_contact": "The event {name} is kept of {contact_id}, which is no contact.",
    "gap.choice_without_contact": "A choice of the topic {topic_id} is that of {contact_id}, which is no "
    "contact.",
    "gap.choice_without_topic": "The contact {contact_id} chose {topic_id}, which is no topic.",
    "gap.import_without_job": "The import {id} is {status}, and its team has no job that would do it.",
    "gap.import_without_file": "The import {id} is {status}, and names no file.",
    "gap.import_counts_differ": "The import {id} counts {counted} rows, and its place in the file is "
    "behind {read}.",
    "gap.imports_at_once": "The import {id} is in progress beside an older one of its team.",
    "gap.import_error_without_import": "The row error {id} is one of {import_id}, which is no import.",
    "gap.value_without_property": "The contact {contact_id} has a value under the number {number}, which "
    "is no property's.",
    "gap.value_of_another_type": "The contact {contact_id} has a value of the property {key} that is no "
    "{type}.",
    "gap.deleted_property_without_job": "The property {property_id} was deleted, and nothing removes its "
    "values.",
    "gap.member_without_segment": "The contact {contact_id} belongs to the segment {segment_id}, which is "
    "gone, and no job ends that.",
    "gap.template_without_version": "The template {template_id} names a version that does not exist.",
    "gap.version_without_template": "The version {version_id} is neither the draft of a template nor was "
    "it ever published.",
    "gap.broadcast_recipients_lost": "The broadcast {id} began with {recipients} recipients, and there "
    "are rows of {stored}.",
    "gap.broadcast_recipients_without_start": "The broadcast {id} is {status}, and has recipients before "
    "it began.",
    "gap.broadcast_sent_and_waiting": "The broadcast {id} is sent, and the contact {contact_id} still "
    "waits for it.",
    "gap.broadcast_without_job": "The broadcast {id} is {status}, and no job does anything about it.",
    "gap.broadcast_without_content": "The broadcast {id} is being sent, and its content {content_id} is "
    "missing.",
    "gap.broadcast_variant_mixed": "The copy {email_id} of the broadcast {broadcast_id} is of another "
    "variant than {variant}.",
    "gap.broadcast_variant_missing": "The copy {email_id} of the broadcast {broadcast_id}, which has an "
    "A/B test, is of no variant.",
    "gap.broadcast_recipient_without_email": "The copy {email_id} of the broadcast {broadcast_id} is "
    "missing, while others of it are there.",
    "gap.broadcast_metric_differs_from_history": "In the quarter hour from {start}Z the metric {metric} "
    "of broadcast {broadcast_id} is {written}, but the history of its copies counts {counted}.",
    "gap.broadcast_moments_differ": "In the quarter hour from {start}Z the rollups of ten seconds of "
    "broadcast {broadcast_id} do not add up to that of the quarter hour.",
    "gap.run_without_work": "The run {id} of an automation is running, and nothing is left for it to do.",
    "gap.work_without_run": "The step {position} of the run {run_id} is to be carried out, and the run is "
    "over or not there.",
    "gap.waiting_step_without_work": "The step {position} of the run {run_id} waits, and nothing will end "
    "it.",
    "gap.ended_step_with_work": "The step {position} of the run {run_id} is over, and would be carried "
    "out again.",
    "gap.step_without_run": "The step {position} belongs to the run {run_id}, which is not there.",
    "gap.run_without_version": "The run {id} walks version {version} of its automation, which is not there.",
    "gap.work_out_of_reach": "The step {position} of the run {run_id} is due at {due_at}, so nothing "
    "carries it out.",
    "gap.event_without_job": "The event {id} waits in the partition {partition}, and no job distributes it.",
    "gap.event_in_two_partitions": "Events for one contact wait in the partitions {partition} and "
    "{other}, the event {id} among them.",
    "gap.inbox_counts": "The inbox {inbox_id} counts {unread} unread threads and {drafts} drafts, and has "
    "{found_unread} and {found_drafts}.",
    "gap.thread_counts": "The thread {thread_id} counts {messages} messages, {inbound} of them inbound, "
    "{unread} unread and {drafts} drafts, and has {found_messages}, {found_inbound}, {found_unread} and "
    "{found_drafts}.",
    "gap.thread_newest": "The thread {thread_id} does not show its newest message, or not whether it has "
    "attachments.",
    "gap.thread_kept_too_long": "The thread {thread_id} is in the trash until {purge_at}, which is more "
    "than 30 days away.",
    "gap.message_without_thread": "The message {message_id} of the inbox {inbox_id} is in the thread "
    "{thread_id}, which the inbox does not have.",
    "gap.draft_without_thread": "The draft {draft_id} answers in the thread {thread_id}, which its inbox "
    "does not have.",
    "gap.attachment_without_draft": "The attachment {attachment_id} belongs to the draft {draft_id}, "
    "which does not exist.",
    "gap.inbox_without_domain": "The inbox {inbox_id} is at the domain {domain_id}, which does not exist.",
    "gap.inbox_addresses": "The addresses of the inbox {inbox_id} are not those that lead to it.",
    "gap.rows_without_inbox": "There are rows of the inbox {inbox_id}, which does not exist, and nothing "
    "removes them.",
    "gap.inbox_keys": "The key {key_id} is for the inbox {inbox_id}, which does not exist, and is "
    "not inactive.",
    "gap.label_without_thread": "The label {label_id} is on {thread_id}, and one of the two does not exist.",
    "gap.label_elsewhere": "The label {label_id} does not stand in lists where its thread {thread_id} "
    "stands.",
    "gap.message_of_free_email": "The inbox {inbox_id} has the message {id}, and its email does not name "
    "the inbox.",
    "gap.email_without_message": "The email {id} was sent from the inbox {inbox_id}, which has no message "
    "of it.",
    "gap.email_of_two_drafts": "The email {email_id} was made of {drafts} drafts.",
    "gap.message_not_described": "The message {id} of the inbox {inbox_id} is in no block, and searches "
    "do not find it.",
    "gap.block_without_parts": "The block {id} of the inbox {inbox_id} has not all parts of its matrix.",
    "gap.erasure_without_job": "The erasure {id} is not done, and no job goes on with it.",
    "gap.captured_without_bytes": "The captured mail {id} has no bytes.",
    "gap.job_given_up": "The job {id} ({kind}) has ended its process {begun} times in a row: it is tried "
    "once a day.",
    "gap.job_out_of_reach": "The job {id} ({kind}) is due at {due_at}, so nothing begins it.",
    "gap.recipients_differ_from_addresses.unread": "The email has an address that cannot be read.",
    "gap.recipients_differ_from_addresses.missing": "{missing} of the email's {wanted} addresses have no "
    "recipient row.",
    "gap.recipients_differ_from_addresses.extra": "{extra} recipient rows stand for none of the email's "
    "addresses.",
    "gap.account_unbalanced": "The team {team} had {accepted} recipients accepted, but {known} are "
    "delivered, bounced, failed, suppressed, canceled or pending.",
    "gap.key_not_listed": "The list of keys lacks {key_id}, which values need, so starts do not ask for "
    "it; `pillarbox keyring reseal` mends that.",
    "gap.any.blob_missing": "The blob {blob} of {table} {id} ({size} bytes) is missing.",
    "gap.any.blob_size": "The blob {blob} of {table} {id} ({size} bytes) is of another size.",
    "gap.any.blob_name": "The blob {blob} of {table} {id} ({size} bytes) is not a name that a blob can have.",
}
"""The texts, with the names of the values in the sentences of the invariants."""
