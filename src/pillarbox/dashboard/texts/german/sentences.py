"""Sentences of the API and of commands that screens show: they are recognised by these texts.

The English ones are those of the slices that say them. A screen in another language finds the text that a
sentence was made from, and says the same with the same values, in German."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "advice.absent.problem": "Unter {owner} gibt es keinen {type}-Eintrag.",
    "advice.no_domain.problem": "Die Domain {domain} gibt es im DNS nicht.",
    "advice.name_too_long.problem": "Den Eintrag kann es nicht geben: Sein Name wäre länger als die 253 "
    "Zeichen, die das DNS erlaubt.",
    "advice.doubled_name.problem": "Der Eintrag steht unter {place}: Der Domainname kommt darin zweimal vor.",
    "advice.wrong_host.problem": "Der Eintrag steht unter {place} statt unter {owner}.",
    "advice.wrong_type.problem": "Der Wert steht unter {owner} in einem TXT-Eintrag.",
    "advice.wildcard.problem": "Was unter {owner} gefunden wird, stammt aus einem Wildcard-Eintrag (`*`); "
    "etwas Eigenes steht dort nicht.",
    "advice.cname_beside.problem": "{owner} ist ein CNAME auf {place}, und neben einem CNAME gilt kein "
    "anderer Eintrag.",
    "advice.cname_dangling.problem": "{owner} ist ein CNAME auf {place}, das es nicht gibt.",
    "advice.quotes_kept.problem": "Die Anführungszeichen wurden Teil des Wertes: {found}.",
    "advice.target_doubled.problem": "Der Eintrag zeigt auf {found}: Ihr DNS-Anbieter hat die Domain an "
    "den Wert angehängt.",
    "advice.two_spf.problem": "Unter {owner} gibt es {count} SPF-Einträge; Empfänger beachten dann keinen "
    "davon.",
    "advice.spf_mechanism.problem": "Im SPF-Eintrag unter {owner} fehlt {missing}.",
    "advice.spf_negated.problem": "Der SPF-Eintrag nennt {missing} mit einem Vorzeichen, das es "
    "verbietet: {found}.",
    "advice.spf_version.problem": "Der Wert beginnt nicht mit `v=spf1` und einem Leerzeichen: {found}.",
    "advice.spf_not_there.problem": "Unter {owner} gibt es TXT-Einträge, aber keiner davon ist ein "
    "SPF-Eintrag: {found}.",
    "advice.spf_after_all.problem": "Der SPF-Eintrag nennt {missing} hinter `all`, wo Empfänger nicht "
    "weiterlesen.",
    "advice.old_key.problem": "Der Eintrag enthält den früheren Schlüssel dieses Selektors.",
    "advice.truncated_key.problem": "Der Schlüssel ist abgeschnitten: {length} von {whole} Zeichen sind "
    "angekommen.",
    "advice.case_changed.problem": "Alle Buchstaben des Schlüssels wurden geändert: {case}.",
    "advice.plus_lost.problem": "Die Zeichen `+` des Schlüssels gingen unterwegs verloren.",
    "advice.empty_key.problem": "Der Eintrag enthält keinen Schlüssel (`p=` mit nichts dahinter); das "
    "heißt, der Schlüssel ist widerrufen.",
    "advice.missing_semicolon.problem": "Zwischen den Teilen des Wertes fehlt ein Semikolon: {found}.",
    "advice.no_p_tag.problem": "Der Schlüssel steht dort ohne `p=` davor.",
    "advice.other_key.problem": "Der Eintrag enthält einen anderen Schlüssel als unseren.",
    "advice.not_a_key.problem": "Der TXT-Eintrag unter {owner} ist kein DKIM-Schlüssel: {found}.",
    "advice.two_keys.problem": "Unter {owner} gibt es {count} Schlüssel; Empfänger nehmen vielleicht den "
    "falschen.",
    "advice.dkim_tag.problem": "Der Schlüssel stimmt, aber Empfänger ignorieren ihn vielleicht wegen "
    "`{found}`.",
    "advice.null_mx.problem": "{owner} erklärt mit einem Null-MX (`0 .`), dass es keine E-Mails annimmt.",
    "advice.mx_address.problem": "Der MX-Eintrag enthält eine IP-Adresse ({found}); er muss einen "
    "Hostnamen enthalten.",
    "advice.other_mx.problem": "Der MX-Eintrag von {owner} nennt {found}, nicht {value}.",
    "advice.replace_mx.problem": "E-Mails für {owner} gehen an {found}.",
    "advice.higher_preference_mx.problem": "{found} steht vor {value}: Die kleinste Zahl wird zuerst "
    "versucht.",
    "advice.equal_preference_mx.problem": "{found} hat dieselbe Zahl wie {value}, also geht die Hälfte "
    "der E-Mails dorthin.",
    "advice.other_target.problem": "{owner} ist ein CNAME auf {found}, nicht auf {value}.",
    "advice.address_instead.problem": "{owner} hat eigene Adressen ({found}) und ist kein CNAME.",
    "advice.trouble.problem": "Das DNS gab keine Antwort zu {owner}: {found}.",
    "advice.owned_elsewhere.problem": "Ein anderes Team dieser Installation hat belegt, dass {domain} ihm "
    "gehört.",
    "advice.absent.step": "Veröffentlichen Sie einen Eintrag vom Typ {type} mit dem Namen `{shown}` und "
    "dem Wert `{value}`. Es kann bis zu einer Stunde dauern, bis neue Einträge sichtbar sind.",
    "advice.no_domain.step": "Prüfen Sie, ob der Name richtig geschrieben, die Domain registriert und an "
    "Nameserver delegiert ist.",
    "advice.name_too_long.step": "Nehmen Sie einen kürzeren Domainnamen.",
    "advice.doubled_name.step": "Ihr DNS-Anbieter hängt die Domain selbst an Ihre Eingabe an. Geben Sie "
    "als Namen nur `{shown}` ein.",
    "advice.wrong_host.step": "Ändern Sie seinen Namen so, dass er unter {owner} steht; bei den meisten "
    "Anbietern geben Sie dafür `{shown}` ein.",
    "advice.wrong_type.step": "Ändern Sie den Typ des Eintrags in {type}.",
    "advice.wildcard.step": "Veröffentlichen Sie einen Eintrag vom Typ {type} mit dem Namen `{shown}` und "
    "dem Wert `{value}`. Ein eigener Eintrag hat Vorrang vor dem Wildcard-Eintrag.",
    "advice.cname_beside.step": "Entfernen Sie den CNAME unter {owner}, oder wählen Sie für seinen Zweck "
    "einen anderen Namen.",
    "advice.cname_dangling.step": "Entfernen Sie den CNAME unter {owner}, und veröffentlichen Sie dort "
    "einen Eintrag vom Typ {type} mit dem Wert `{value}`.",
    "advice.quotes_kept.step": "Geben Sie den Wert ohne Anführungszeichen ein; die nötigen ergänzt Ihr "
    "DNS-Anbieter.",
    "advice.target_doubled.step": "Geben Sie den Wert mit einem Punkt am Ende ein: `{target}.`",
    "advice.two_spf.step": "Behalten Sie einen Eintrag, und übernehmen Sie alles in ihn: `{merged}`.",
    "advice.spf_mechanism.step": "Ändern Sie den Eintrag in `{merged}`.",
    "advice.spf_negated.step": "Entfernen Sie das Zeichen vor dem Mechanismus: `{merged}`.",
    "advice.spf_version.step": "Geben Sie den Wert genau so ein, wie er angezeigt wird: `{value}`.",
    "advice.spf_not_there.step": "Fügen Sie einen weiteren TXT-Eintrag mit dem Wert `{value}` hinzu.",
    "advice.spf_after_all.step": "Setzen Sie es vor `all`: `{merged}`.",
    "advice.old_key.step": "Ersetzen Sie den ganzen Wert durch den jetzigen Schlüssel.",
    "advice.truncated_key.step": "Geben Sie den ganzen Wert ein. Sind höchstens 255 Zeichen erlaubt, "
    "geben Sie ihn als zwei Zeichenketten in Anführungszeichen ein.",
    "advice.case_changed.step": "Geben Sie den Wert noch einmal genau so ein, wie er angezeigt wird; "
    "Groß- und Kleinschreibung zählen.",
    "advice.plus_lost.step": "Geben Sie den Wert noch einmal genau so ein, wie er angezeigt wird, und "
    "vergleichen Sie die Zeichen `+`.",
    "advice.empty_key.step": "Geben Sie den ganzen Wert ein, wie er angezeigt wird.",
    "advice.missing_semicolon.step": "Geben Sie den Wert genau so ein, wie er angezeigt wird: `p=` und "
    "der Schlüssel, mehr ist nicht nötig.",
    "advice.no_p_tag.step": "Setzen Sie `p=` vor den Schlüssel.",
    "advice.other_key.step": "Ersetzen Sie den ganzen Wert durch den angezeigten. Benutzt ein anderer "
    "Dienst diesen Selektor, muss sein Eintrag woanders stehen.",
    "advice.not_a_key.step": "Ersetzen Sie seinen Wert durch den angezeigten.",
    "advice.two_keys.step": "Entfernen Sie jeden anderen TXT-Eintrag unter {owner}.",
    "advice.dkim_tag.step": "Geben Sie den Wert genau so ein, wie er angezeigt wird: `p=` und der "
    "Schlüssel, mehr ist nicht nötig.",
    "advice.null_mx.step": "Entfernen Sie diesen Eintrag, und veröffentlichen Sie einen MX-Eintrag mit "
    "dem Wert `{value}`.",
    "advice.mx_address.step": "Ändern Sie seinen Wert in `{value}`.",
    "advice.other_mx.step": "Veröffentlichen Sie einen MX-Eintrag mit dem Wert `{value}` und der "
    "Priorität 10.",
    "advice.replace_mx.step": "Um hier zu empfangen, entfernen Sie diese MX-Einträge, und veröffentlichen "
    "Sie einen mit dem Wert `{value}` und der Priorität 10. Um die jetzigen Postfächer zu behalten, nehmen "
    "Sie zum Empfangen eine Subdomain.",
    "advice.higher_preference_mx.step": "Entfernen Sie die anderen MX-Einträge, oder geben Sie {value} "
    "eine kleinere Zahl als allen anderen.",
    "advice.equal_preference_mx.step": "Entfernen Sie die anderen MX-Einträge, oder geben Sie {value} "
    "eine kleinere Zahl als allen anderen.",
    "advice.other_target.step": "Ändern Sie den CNAME in `{value}`.",
    "advice.address_instead.step": "Entfernen Sie die A- und AAAA-Einträge, und veröffentlichen Sie einen "
    "CNAME mit dem Wert `{value}`. Ein Proxy des Anbieters vor dem Namen muss ausgeschaltet sein.",
    "advice.trouble.step": "Deswegen hat sich nichts geändert. Hält es an, lassen Sie die Nameserver der "
    "Domain prüfen.",
    "advice.owned_elsewhere.step": "Gehört die Domain Ihnen, beanspruchen Sie sie.",
    "record_note.tracking": "für Links und Bilder in E-Mails mit Tracking; bis der Eintrag verifiziert "
    "ist, werden E-Mails ohne sie gesendet",
    "record_note.waiting": "veröffentlichen Sie ihn: Dieser Schlüssel signiert, sobald der Eintrag "
    "gefunden ist",
    "record_note.retiring": "behalten Sie ihn bis {until}: Damit signierte E-Mails können noch unterwegs "
    "sein",
    "record_note.claim": "belegt den Anspruch; die eigenen Einträge der Domain folgen, sobald er "
    "durchgesetzt ist",
    "record_note.dmarc": "empfohlen; haben Sie schon einen, behalten Sie Ihren",
    "insight.unsigned": "Keine verifizierte Domain dieses Teams signiert für {host}, deshalb kann DMARC "
    "nicht bestehen. Verifizieren Sie die Domain.",
    "insight.signed": "DKIM signiert für {host}, die Domain in From, DMARC passt also.",
    "insight.own_links": "Jeder Link führt zu einem Host von {domain}.",
    "insight.foreign_links": "Links führen zu Hosts anderer Domains als der des Absenders: {hosts}. "
    "Filter vertrauen Links zur eigenen Domain des Absenders mehr.",
    "insight.true_links": "Kein Link zeigt einen anderen Host als den, zu dem er führt.",
    "insight.false_links": "Der Text eines Links nennt einen anderen Host: {links}. Filter halten das für "
    "Phishing.",
    "insight.small_html": "Das HTML hat {size} kB: Gmail zeigt alles davon.",
    "insight.large_html": "Das HTML hat {size} kB: Gmail zeigt die ersten 102 kB und versteckt den Rest "
    "hinter einem Link.",
    "insight.text": "Es gibt einen Textteil für Programme und für Leser ohne HTML.",
    "insight.no_text": "Es gibt keinen Textteil. Fügen Sie einen hinzu: Filter erwarten ihn neben HTML, "
    "und manche Leser brauchen ihn.",
    "insight.image_texts": "Jedes Bild hat einen Alternativtext.",
    "insight.no_image_texts": "Ohne Alternativtext (`alt`) sind {missing} von {total} Bildern: Wer keine "
    "Bilder lädt, sieht dort nichts.",
    "insight.no_reply": "Der Absender {address} sagt, dass niemand Antworten liest. Eine Adresse, die sie "
    "annimmt, schafft Vertrauen.",
    "insight.takes_replies": "Die Adresse des Absenders lehnt Antworten nicht ab.",
    "insight.own_unsubscribe": "Die Header für das Abbestellen mit einem Klick werden von selbst "
    "hinzugefügt.",
    "insight.no_unsubscribe": "Das ist eine Massen-E-Mail ohne List-Unsubscribe, das Gmail und Yahoo "
    "verlangen. Verwenden Sie ein Thema oder einen Broadcast, oder setzen Sie den Header.",
    "insight.no_one_click": "List-Unsubscribe steht ohne List-Unsubscribe-Post da, also ist kein "
    "Abbestellen mit einem Klick möglich.",
    "insight.one_click": "Die Header für das Abbestellen mit einem Klick sind da.",
    "waiting.silent": "Der Prozess, der sie hatte, meldet sich nicht mehr; ein anderer übernimmt sie.",
    "waiting.working": "Ein Prozess der Zustellung arbeitet daran.",
    "waiting.fetching": "Wartet auf einen Anhang, der von seiner URL geladen wird.",
    "waiting.scheduled": "Geplant für {time}.",
    "waiting.paused": "Vom Betreiber angehalten.",
    "waiting.quarantined": "{reason} Mit `queue retry` wird sie noch einmal versucht.",
    "waiting.due": "Fällig; wartet auf einen Prozess der Zustellung.",
    "waiting.until": "Wartet bis {time}.",
    "waiting.count.due": "{number} fällig",
    "waiting.count.working": "{number} in Arbeit",
    "waiting.count.retry": "{number} mit neuem Versuch",
    "waiting.count.scheduled": "{number} geplant",
    "waiting.count.fetching": "{number} mit Warten auf einen Anhang",
    "waiting.count.paused": "{number} angehalten",
    "waiting.count.quarantined": "{number} zurückgestellt",
}
