"""Texts of the screens of topics."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "topics.title": "Topics",
    "topics.words": "subscriptions, preferences, opt in, opt out, mailing lists",
    "topics.name": "Name",
    "topics.name.hint": "At most 50 characters. Recipients read it where they choose what they get.",
    "topics.description": "Description",
    "topics.description.hint": "At most 200 characters, shown below the name.",
    "topics.default": "Who has not chosen",
    "topics.default.hint": "This cannot be changed later: people who have not chosen rely on it.",
    "topics.default.opt_in": "Gets it",
    "topics.default.opt_out": "Does not get it",
    "topics.visibility": "Visibility",
    "topics.visibility.hint": "A public topic is on the page where recipients choose. A private one is "
    "only there for those who get it.",
    "topics.visibility.public": "Public",
    "topics.visibility.private": "Private",
    "topics.subscribers": "Subscribers",
    "topics.created": "Created",
    "topics.not_counted": "Counting the subscribers of so many contacts takes a few seconds.",
    "topics.count": "Count them",
    "topics.none": "No topic yet",
    "topics.none.text": "A topic is a kind of mail, such as product news, that people can leave without "
    "leaving everything else. Name one in a broadcast or in `topic_id` of a mail.",
    "topics.new": "Create topic",
    "topics.new.words": "new topic, add a subscription",
    "topics.new.lead": "A kind of mail that people choose by itself. The link in its mails leaves this "
    "topic and nothing else.",
    "topics.make": "Create",
    "topics.back": "Back",
    "topic.title": "Topic",
    "topic.default.opt_in": "Contacts get this mail until they leave.",
    "topic.default.opt_out": "Contacts get this mail once they join.",
    "topic.edit": "Edit",
    "topic.save": "Save",
    "topic.delete": "Delete",
    "topic.delete.title": "Delete {name}?",
    "topic.delete.text": "Nobody can choose it any more. What people have chosen still holds for mail that "
    "is on its way, and is removed then.",
    "topic.typed_wrong": "Type the name of the topic to delete it.",
    "done.topic_created": "The topic is created.",
    "done.topic_changed": "The topic is saved.",
    "done.topic_deleted": "The topic is deleted.",
}
