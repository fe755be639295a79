"""Orders of the demo's shop, and the mail that follows from each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Final

from pillarbox.demo import mail_texts
from pillarbox.demo.contacts import ShopAudience
from pillarbox.demo.mail_texts import Order
from pillarbox.demo.month import DemoMonth
from pillarbox.demo.schedule import DAYS, busy_instant, orders_of, working_day_after
from pillarbox.demo.shop import BROKEN_DOMAIN, ORDERS, PRODUCTS, WORKSHOPS, Customer

FIRST_ORDER: Final = 4012
REVIEWED: Final = 0.5


def plan_orders(month: DemoMonth, audience: ShopAudience) -> None:
    """Plan the orders of each day, and the mail that follows from each."""
    chance, number = month.chance, FIRST_ORDER
    wrong = iter(audience.wrong)
    first = DAYS + 1 - month.size.days
    wrong_days = set(chance.sample(range(first, DAYS), min(DAYS - first, len(audience.wrong))))
    for index in range(first, DAYS + 1):
        day = month.day(index)
        for instant in sorted(busy_instant(chance, day) for _ in range(orders_of(chance, day))):
            items = chance.sample(PRODUCTS, chance.choices((1, 2, 3), (60, 28, 12))[0])
            who = chance.choice(audience.buyers)
            if index in wrong_days:
                wrong_days.discard(index)
                who = next(wrong)
            if instant > month.start:
                order = Order(number, who, items)
                month.agenda.add(instant, partial(order_comes_in, month, order))
                number += 1
        for _ in range(chance.randint(0, 3)):
            who = chance.choice(audience.buyers)
            month.agenda.add(busy_instant(chance, day), partial(password_is_forgotten, month, who))
        if chance.random() < 0.55:
            who = chance.choice(audience.buyers)
            month.agenda.add(busy_instant(chance, day), partial(workshop_is_booked, month, who))
        if chance.random() < 0.4:
            month.agenda.add(busy_instant(chance, day), partial(request_is_wrong, month))


async def order_comes_in(month: DemoMonth, order: Order) -> None:
    """Confirm an order; a parcel follows on the next working day, and a request for a review a week later."""
    email_id = await month.send(mail_texts.confirmation(order))
    link = mail_texts.order_link(order.number)
    month.is_read_later(email_id, order.customer, link, opened=0.62, clicked=0.2)
    if order.customer.address.startswith("delivered") and month.chance.random() < 0.86:
        day = month.now.replace(hour=0, minute=0, second=0, microsecond=0)
        parcels = month.parcels.setdefault(working_day_after(day), [])
        parcels.append(order)
        if len(parcels) == 1:
            leaves = working_day_after(day) + timedelta(hours=month.chance.uniform(13.5, 15.5))
            month.agenda.add(leaves, partial(parcels_leave, month, parcels))


async def parcels_leave(month: DemoMonth, orders: Sequence[Order]) -> None:
    """Tell the customers of the day's parcels, and schedule requests for reviews a week later."""
    codes = [f"00340{month.chance.randint(10**9, 10**10 - 1)}" for _ in orders]
    mails = [
        mail_texts.from_template(
            "order-shipped",
            order.customer,
            "shipping",
            {"CUSTOMER": order.customer.first, "ORDER_NUMBER": order.number, "PARCEL": code},
        )
        for order, code in zip(orders, codes, strict=True)
    ]
    email_ids = await month.send_batch(mails)
    for order, code, email_id in zip(orders, codes, email_ids, strict=True):
        link = f"{mail_texts.SITE}/track/{code}"
        month.is_read_later(email_id, order.customer, link, opened=0.7, clicked=0.45)
    day = month.now.replace(hour=0, minute=0, second=0, microsecond=0)
    asked = [order for order in orders if month.chance.random() < REVIEWED]
    if asked:
        instant = day + timedelta(days=7, hours=month.chance.uniform(8.2, 8.9))
        month.agenda.add(instant, partial(reviews_are_asked, month, asked))


async def reviews_are_asked(month: DemoMonth, orders: Sequence[Order]) -> None:
    """Ask customers how they like what they have had for some days."""
    mails = []
    for order in orders:
        values = {
            "CUSTOMER": order.customer.first,
            "PRODUCT": order.items[0].name,
            "ORDER_NUMBER": order.number,
        }
        mails.append(mail_texts.from_template("review-request", order.customer, "review", values))
    for order, email_id in zip(orders, await month.send_batch(mails), strict=True):
        link = f"{mail_texts.SITE}/reviews/new?order={order.number}"
        month.is_read_later(email_id, order.customer, link, opened=0.5, clicked=0.3)


async def password_is_forgotten(month: DemoMonth, who: Customer) -> None:
    """Send a link for a new password."""
    token = f"{month.chance.getrandbits(64):016x}"
    email_id = await month.send(mail_texts.password_reset(who, token))
    link = f"{mail_texts.SITE}/account/password?token={token}"
    month.is_read_later(email_id, who, link, opened=0.85, clicked=0.8)


async def workshop_is_booked(month: DemoMonth, who: Customer) -> None:
    """Confirm a place at a workshop, and schedule a reminder of it."""
    values = {"CUSTOMER": who.first, "WORKSHOP": month.chance.choice(WORKSHOPS)}
    email_id = await month.send(mail_texts.from_template("workshop-booked", who, "workshop", values))
    month.is_read_later(email_id, who, f"{mail_texts.SITE}/workshops/calendar", opened=0.75, clicked=0.3)
    eve = month.now.replace(hour=9, minute=0, second=0, microsecond=0)
    due = eve + timedelta(days=month.chance.randint(3, 9))
    reminder = mail_texts.workshop_reminder(who, values["WORKSHOP"])
    await month.shop.call("POST", "/emails", {**reminder, "scheduled_at": due.isoformat()})


async def request_is_wrong(month: DemoMonth) -> None:
    """Make a request that the API refuses, as programs under development do."""
    wrong: Sequence[dict[str, Any]] = (
        {"from": ORDERS, "to": "no-address", "subject": "Test", "text": "Test"},
        {
            "from": f"shop@{BROKEN_DOMAIN}",
            "to": f"delivered@{month.simulator}",
            "subject": "Hi",
            "text": "Hi",
        },
        {"from": ORDERS, "to": f"delivered@{month.simulator}", "text": "No subject"},
    )
    await month.shop.call("POST", "/emails", month.chance.choice(wrong), refused=True)
