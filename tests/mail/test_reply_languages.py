"""Answers in other languages than English (BNC-03): a bad address, a full mailbox, a refused sender."""

from __future__ import annotations

import time

import pytest

from pillarbox.mail.reports.replies import BounceType, SubType, classify
from pillarbox.mail.smtp.reply import SmtpReply, SmtpStage

GONE = """
Benutzer unbekannt
Empfänger unbekannt
Unbekannter Empfänger
Die E-Mail-Adresse wurde nicht gefunden
Das Postfach existiert nicht
Kein Benutzer mit diesem Namen
Utilisateur inconnu
Destinataire inconnu
L'adresse e-mail du destinataire est introuvable
Cette boîte aux lettres n'existe pas
Aucun utilisateur de ce nom
Usuario desconocido
El destinatario no existe
El buzón no existe
No se pudo entregar: usuario no encontrado
Utente sconosciuto
La casella di posta non esiste
Il destinatario non è valido
Usuário desconhecido
Destinatário não encontrado
A caixa postal não existe
Utilizador inexistente
Gebruiker onbekend
Onbekende gebruiker
Het postvak bestaat niet
De ontvanger is niet gevonden
Nieznany użytkownik
Użytkownik nie istnieje
Skrzynka nie istnieje
Nie ma takiego użytkownika
Пользователь не найден
Нет такого пользователя
Получатель не существует
Почтовый ящик не существует
Адресат неизвестен
宛先のメールアドレスが見つかりません
ユーザが存在しません
受信者は存在しません
宛先不明
收件人不存在
收件人邮件地址（ann@example.test）不存在，邮件无法送达
用户不存在
邮箱不存在
查无此人
无此用户
"""
FULL = """
Das Postfach ist voll
Speicherplatz überschritten
Quota des Benutzers überschritten
La boîte aux lettres du destinataire est pleine
Espace de stockage insuffisant
Quota dépassé
El buzón está lleno
Cuota excedida
La casella di posta è piena
Spazio esaurito
A caixa postal está cheia
Cota excedida
De mailbox is vol
Het postvak van de gebruiker is vol
Skrzynka jest pełna
Skrzynka odbiorcy jest przepełniona
Почтовый ящик переполнен
Превышена квота: ящик заполнен
メールボックスがいっぱいです
容量を超過しました
邮箱已满
收件人邮箱空间已满
对方邮箱空间不足
"""
REFUSED = """
Absender unbekannt
Die Absenderadresse existiert nicht
Domain des Absenders nicht gefunden
Expéditeur inconnu
L'adresse de l'expéditeur n'existe pas
Remitente desconocido
La dirección de correo del remitente no existe
Mittente sconosciuto
L'indirizzo del mittente non esiste
Remetente desconhecido
Afzender onbekend
Nadawca nieznany
Отправитель неизвестен
Адрес отправителя не существует
送信者が存在しません
送信元メールアドレスが無効です
发件人不存在
发件人邮箱不存在
Nachricht abgelehnt
Message rejeté
Mensaje rechazado
Сообщение отклонено
邮件被拒绝
"""


def lines(table: str) -> list[str]:
    return table.strip().splitlines()


@pytest.mark.parametrize("text", lines(GONE))
def test_a_bad_address(text: str) -> None:
    for enhanced in (None, "5.1.1", "5.0.0"):
        assert classify(SmtpReply(550, enhanced, text), SmtpStage.RCPT).suppresses
    assert not classify(SmtpReply(550, "5.7.1", text), SmtpStage.RCPT).suppresses
    assert not classify(SmtpReply(450, None, text), SmtpStage.RCPT).suppresses


@pytest.mark.parametrize("text", lines(FULL))
def test_a_full_mailbox(text: str) -> None:
    for enhanced in (None, "5.1.1", "5.2.1"):
        verdict = classify(SmtpReply(550, enhanced, text), SmtpStage.RCPT)
        assert (verdict.bounce_type, verdict.sub_type) == (BounceType.TRANSIENT, SubType.MAILBOX_FULL)


@pytest.mark.parametrize("text", lines(REFUSED))
def test_a_refused_sender_or_mail(text: str) -> None:
    assert not classify(SmtpReply(550, None, text), SmtpStage.RCPT).suppresses


@pytest.mark.parametrize(
    "piece", ["postfach ", "absender ", "ящик ", "邮箱", "メールボックス", "usuario no "]
)
def test_long_texts_are_judged_in_bounded_time(piece: str) -> None:
    """OUT-18."""
    began = time.thread_time()
    classify(SmtpReply(550, None, (piece * 2048)[:2048]), SmtpStage.RCPT)
    assert time.thread_time() - began < 0.5
