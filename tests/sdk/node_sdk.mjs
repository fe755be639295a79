// Calls every method of the official Node SDK once and prints, as JSON, what each of them got.
import { Resend } from "resend";

const { EMAIL_ID, THREAD_ADDRESS, CLAIMED, GRANT_ID, FROM } = process.env;
const client = new Resend();
const answers = {};
const INNER = new Set([
  "logError", "fetchRequest", "post", "get", "put", "patch", "delete", // of the client itself
  "contacts.imports.buildCreateFormData", "contacts.imports.buildColumnMap", "contacts.imports.appendField",
  "emails.receiving.forwardPassthrough", "emails.receiving.forwardWrapped", "emails.receiving.downloadRaw",
  "templates.performCreate",
]);

function methodsOf(part, path = "") {
  const found = new Set();
  for (let proto = Object.getPrototypeOf(part); proto !== Object.prototype; proto = Object.getPrototypeOf(proto))
    for (const name of Object.getOwnPropertyNames(proto))
      if (name !== "constructor" && typeof part[name] === "function") found.add(path + name);
  for (const [name, inner] of Object.entries(part))
    if (name !== "resend" && inner && typeof inner === "object" && !(inner instanceof Headers))
      for (const method of methodsOf(inner, `${path}${name}.`)) found.add(method);
  return [...found].filter((method) => !INNER.has(method));
}

async function call(path, ...given) {
  const names = path.split(".");
  const method = names.pop();
  const part = names.reduce((found, name) => found[name], client);
  const answer = await part[method](...given);
  if (answer.error) throw new Error(`${path}: ${JSON.stringify(answer.error)}`);
  answers[path] ??= answer.data;
  return answer.data;
}

async function until(step) {
  for (let tries = 0; tries < 200; tries++) {
    const found = await step();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`never: ${step}`);
}

const mail = { from: FROM, to: "ada@quay.example", subject: "Berth 12", html: "<p>Ready</p>", text: "Ready" };
const later = new Date(Date.now() + 3600_000).toISOString();
const attachments = [{ filename: "plan.txt", content: Buffer.from("tide"), contentType: "text/plain" }];

async function emails() {
  const { id } = await call("emails.send", { ...mail, attachments, replyTo: ["r@harbor.example"], cc: "b@quay.example",
    tags: [{ name: "kind", value: "berth" }], headers: { "X-Entity-Ref-ID": "1" } }, { idempotencyKey: "one" });
  await until(async () => (await call("emails.get", id)).last_event === "delivered");
  await call("emails.list", { limit: 2 });
  await call("emails.share", id, { expiresIn: "2h" });
  await call("emails.metrics", { startDate: new Date(Date.now() - 3600_000).toISOString(), granularity: "hourly",
    metrics: ["sent", "delivered"], dimensions: ["period"], timezone: "Europe/Berlin" });
  const [attachment] = (await call("emails.attachments.list", { emailId: id, limit: 1 })).data;
  await call("emails.attachments.get", { emailId: id, id: attachment.id });
  const planned = await call("emails.create", { ...mail, scheduledAt: later });
  await call("emails.update", { id: planned.id, scheduledAt: "in 2 hours" });
  await call("emails.cancel", planned.id);
  await call("batch.send", [mail, mail], { batchValidation: "permissive" });
  await call("batch.create", [mail]);
}

async function received() {
  const [found] = (await call("emails.receiving.list", { limit: 1 })).data;
  await call("emails.receiving.get", EMAIL_ID, { html_format: "cid" });
  const [attachment] = (await call("emails.receiving.attachments.list", { emailId: found.id })).data;
  await call("emails.receiving.attachments.get", { emailId: found.id, id: attachment.id });
  await call("emails.receiving.forward", { emailId: found.id, to: "ada@quay.example", from: FROM });
  await call("emails.receiving.forward",
    { emailId: found.id, to: "ada@quay.example", from: FROM, passthrough: false, text: "See below" });
}

async function inboxes() {
  await call("inboxes.create", { emailAddress: "node@harbor.example", name: "Node", fromName: "Nele" });
  const inbox = (await call("inboxes.list", { limit: 10 })).data.find((one) => one.email_address === THREAD_ADDRESS);
  const at = { inboxId: inbox.id }, byAddress = { emailAddress: THREAD_ADDRESS };
  await call("inboxes.get", inbox.id);
  await call("inboxes.update", inbox.id, { name: "Desk" });
  await call("inboxes.agent.update",
    { ...at, instructions: "Be kind.", tone: "concise_casual", actions: ["draft_reply"] });
  await call("inboxes.agent.get", byAddress);
  const label = await call("inboxes.labels.create", { ...at, name: "Tide", color: "teal" });
  await call("inboxes.labels.list", at);
  await call("inboxes.labels.update", { ...at, labelId: label.id, name: "Ebb" });
  const [thread] = (await call("inboxes.threads.list",
    { ...byAddress, folders: ["inbox", "archive"], read: false, limit: 5 })).data;
  await call("inboxes.threads.search", { ...at, query: "berth", folders: ["inbox"], hasAttachment: true, limit: 5,
    startDate: new Date(Date.now() - 3600_000).toISOString() });
  const inThread = { ...at, threadId: thread.id };
  await call("inboxes.threads.get", inThread);
  await call("inboxes.threads.update", { ...inThread, read: true, folder: "archive" });
  await call("inboxes.threads.labels.add", { ...inThread, labels: [label.id] });
  await call("inboxes.threads.labels.set", { ...inThread, labels: [label.id] });
  await call("inboxes.threads.labels.remove", { ...inThread, labelId: label.id });
  await call("inboxes.labels.remove", { ...at, labelId: label.id });
  const [email] = (await call("inboxes.threads.emails.list", { ...inThread, limit: 5 })).data;
  const inEmail = { ...inThread, emailId: email.id };
  await call("inboxes.threads.emails.get", inEmail);
  await call("inboxes.threads.emails.reply", { ...inEmail, text: "Soon", replyAll: true, attachments });
  await call("inboxes.threads.emails.forward", { ...inEmail, to: ["ada@quay.example"], text: "See below" });
  const draft = await call("inboxes.drafts.create", { ...at, to: ["ada@quay.example"], subject: "Hi", attachments });
  await call("inboxes.drafts.list", { ...at, limit: 1 });
  await call("inboxes.drafts.get", { ...at, draftId: draft.id });
  await call("inboxes.drafts.update", { ...at, draftId: draft.id, text: "There", attachments: null });
  await call("inboxes.drafts.send", { ...at, draftId: draft.id, headers: { "X-Tide": "low" } });
  const other = await call("inboxes.drafts.create", { ...at, threadId: thread.id, replyToEmailId: email.id, text: "No" });
  await call("inboxes.drafts.remove", { ...at, draftId: other.id });
  await call("inboxes.threads.remove", inThread);
  await call("inboxes.remove", inbox.id);
}

async function domains() {
  const { id } = await call("domains.create", { name: "pier.example", region: "eu-west-1", customReturnPath: "bounce",
    trackingSubdomain: "links", openTracking: true, clickTracking: true, tls: "opportunistic",
    capabilities: { sending: "enabled", receiving: "enabled" } });
  await call("domains.list", { limit: 1 });
  await call("domains.get", id);
  await call("domains.update", { id, tls: "enforced", clickTracking: false });
  await call("domains.verify", id);
  await call("domains.remove", id);
  const claim = await call("domains.claims.create", { name: CLAIMED, region: "us-east-1", customReturnPath: "bounce" });
  await call("domains.claims.get", claim.domain_id);
  await call("domains.claims.verify", claim.domain_id);
}

async function audience() {
  const segment = await call("segments.create", { name: "Crew" });
  await call("segments.get", segment.id);
  await call("segments.list", { limit: 1 });
  await call("segments.update", segment.id, { name: "Crews" });
  const old = await call("audiences.create", { name: "Old" });
  await call("audiences.get", old.id);
  await call("audiences.list", { limit: 1 });
  await call("audiences.update", old.id, { name: "Older" });
  const topic = await call("topics.create", { name: "Tides", defaultSubscription: "opt_in", description: "Twice a day" });
  await call("topics.get", topic.id);
  await call("topics.list");
  await call("topics.update", { id: topic.id, name: "Tide tables" });
  const property = await call("contactProperties.create", { key: "boat", type: "string", fallbackValue: "none" });
  await call("contactProperties.get", property.id);
  await call("contactProperties.list", { limit: 1 });
  await call("contactProperties.update", { id: property.id, fallbackValue: "a boat" });
  const contact = await call("contacts.create", { email: "iris@customer.example", firstName: "Iris", lastName: "Vale",
    unsubscribed: false, properties: { boat: "Gull" }, segments: [{ id: segment.id }],
    topics: [{ id: topic.id, subscription: "opt_in" }] });
  await call("contacts.get", contact.id);
  await call("contacts.get", { email: "iris@customer.example" });
  await call("contacts.list", { limit: 1 });
  await call("contacts.list", { segmentId: segment.id });
  await call("contacts.update", { id: contact.id, firstName: null });
  await call("contacts.segments.list", { email: "iris@customer.example" });
  await call("contacts.segments.remove", { contactId: contact.id, segmentId: segment.id });
  await call("contacts.segments.add", { email: "iris@customer.example", segmentId: segment.id });
  await call("contacts.topics.update", { id: contact.id, topics: [{ id: topic.id, subscription: "opt_out" }] });
  await call("contacts.topics.list", { email: "iris@customer.example", limit: 1 });
  await call("contacts.create", { audienceId: old.id, email: "bo@customer.example", firstName: "Bo" });
  await call("contacts.get", { audienceId: old.id, email: "bo@customer.example" });
  await call("contacts.update", { audienceId: old.id, email: "bo@customer.example", unsubscribed: false });
  await call("contacts.remove", { audienceId: old.id, email: "bo@customer.example" });
  const file = new Blob(["email,first,boat\nkim@customer.example,Kim,Tern\n"], { type: "text/csv" });
  const made = await call("contacts.imports.create", { file, onConflict: "upsert", segments: [{ id: segment.id }],
    columnMap: { email: "email", firstName: "first", properties: { boat: { column: "boat", type: "string" } } },
    topics: [{ id: topic.id, subscription: "opt_in" }] });
  await until(async () => (await call("contacts.imports.get", made.id)).status === "completed");
  await call("contacts.imports.list", { limit: 1, status: "completed" });
  await call("contacts.remove", "kim@customer.example");
  return { segment, old, topic, property, contact };
}

async function templates() {
  const made = await call("templates.create", { name: "Welcome", alias: "welcome", subject: "Hi {{{NAME}}}", from: FROM,
    replyTo: "r@harbor.example", html: "<p>Hi {{{NAME}}}</p>",
    variables: [{ key: "NAME", type: "string", fallbackValue: "you" }] });
  await call("templates.publish", made.id);
  await call("templates.get", "welcome");
  await call("templates.list", { limit: 1 });
  await call("templates.update", made.id, { name: "Welcome again" });
  const chained = await client.templates.create({ name: "Second", html: "<p>Two</p>", subject: "Two" }).publish();
  if (chained.error) throw new Error(JSON.stringify(chained.error));
  const copy = await call("templates.duplicate", made.id);
  await call("templates.remove", copy.id);
  await call("emails.send", { from: FROM, to: "ada@quay.example", template: { id: "welcome", variables: { NAME: "Ada" } } });
  return made;
}

async function broadcasts({ segment, topic }) {
  const content = { from: FROM, subject: "News", html: "<p>Tide {{{RESEND_UNSUBSCRIBE_URL}}}</p>", text: "Tide" };
  const made = await call("broadcasts.create",
    { ...content, segmentId: segment.id, name: "News", previewText: "Soon", topicId: topic.id, replyTo: "r@harbor.example" });
  await call("broadcasts.update", made.id, { name: "News of May", subject: "May", topicId: null });
  await call("broadcasts.get", made.id);
  await call("broadcasts.list", { limit: 1 });
  await call("broadcasts.send", made.id, { scheduledAt: later });
  await call("broadcasts.cancel", made.id);
  const sent = await call("broadcasts.duplicate", made.id);
  await call("broadcasts.send", sent.id);
  await until(async () => (await call("broadcasts.get", sent.id)).status === "sent");
  await call("broadcasts.recipients", sent.id, { type: "sent", limit: 5 });
  await call("broadcasts.clickedLinks", sent.id, { limit: 5 });
  await call("broadcasts.remove", made.id);
  const old = await call("broadcasts.create", { ...content, audienceId: segment.id, send: true, scheduledAt: later });
  await call("broadcasts.cancel", old.id);
}

async function automations({ segment, topic }, template) {
  const event = await call("events.create", { name: "boat.moored", schema: { berth: "number", boat: "string" } });
  await call("events.get", "boat.moored");
  await call("events.list", { limit: 1 });
  await call("events.update", "boat.moored", { schema: { berth: "number" } });
  const steps = [
    { key: "start", type: "trigger", config: { eventName: "boat.moored" } },
    { key: "rule", type: "condition", config: { type: "rule", field: "event.berth", operator: "gt", value: 3 } },
    { key: "mail", type: "send_email", config: { template: { id: template.id, variables: { NAME: { var: "event.boat" } } },
      subject: "Moored", from: FROM, replyTo: "r@harbor.example", topicId: topic.id } },
    { key: "names", type: "contact_update", config: { firstName: "Iris", lastName: null, unsubscribed: false,
      properties: { boat: { var: "event.boat" } } } },
    { key: "crew", type: "add_to_segment", config: { segmentId: segment.id } },
    { key: "wait", type: "wait_for_event", config: { eventName: "boat.moored", timeout: "1 hour",
      filterRule: { type: "rule", field: "event.berth", operator: "gt", value: 3 } } },
    { key: "opened", type: "wait_for_event", config: { eventName: "resend:email.opened", timeout: "1 hour" } },
    { key: "pause", type: "delay", config: { duration: "1 minute" } },
    { key: "gone", type: "contact_delete", config: {} },
  ];
  const connections = [
    { from: "start", to: "rule" },
    { from: "rule", to: "mail", type: "condition_met" },
    { from: "mail", to: "names" },
    { from: "names", to: "crew" },
    { from: "crew", to: "wait" },
    { from: "wait", to: "opened", type: "event_received" },
    { from: "opened", to: "pause", type: "event_received" },
    { from: "wait", to: "gone", type: "timeout" },
  ];
  const made = await call("automations.create", { name: "Moored", status: "enabled", steps, connections });
  await call("automations.get", made.id);
  await call("automations.list", { status: "enabled", limit: 1 });
  await call("events.send", { event: "boat.moored", email: "iris@customer.example", payload: { berth: 4, boat: "Gull" } });
  const [run] = await until(async () => {
    const runs = (await call("automations.runs.list", { automationId: made.id, status: ["running", "completed"] })).data;
    return runs.length && runs;
  });
  await call("automations.runs.get", { automationId: made.id, runId: run.id });
  await call("automations.update", made.id, { name: "Moored boats" });
  await call("automations.stop", made.id);
  const copy = await call("automations.duplicate", made.id);
  await call("automations.remove", copy.id);
  await call("events.create", { name: "boat.left", schema: null });
  await call("events.remove", "boat.left");
}

async function suppressions() {
  const made = await call("suppressions.add", { email: "gone@quay.example" });
  await call("suppressions.get", "gone@quay.example");
  await call("suppressions.list", { origin: "manual", limit: 1 });
  await call("suppressions.remove", made.id);
  await call("suppressions.batch.add", { emails: ["x@quay.example", "y@quay.example"] });
  await call("suppressions.batch.remove", { emails: ["x@quay.example", "y@quay.example"] });
}

async function webhooks() {
  const made = await call("webhooks.create", { endpoint: "https://hooks.harbor.example/in",
    events: ["email.sent", "email.delivered", "contact.created"] });
  await call("webhooks.get", made.id);
  await call("webhooks.list", { limit: 1 });
  await call("webhooks.update", made.id, { events: ["email.sent"], status: "enabled" });
  await call("emails.send", mail);
  const [event] = await until(async () => {
    const events = (await call("webhooks.events.list", { webhookId: made.id, limit: 5 })).data;
    return events.length && events;
  });
  const which = { webhookId: made.id, eventId: event.id };
  await call("webhooks.events.get", which);
  await call("webhooks.events.replay", which);
  await call("webhooks.events.attempts.list", { ...which, limit: 5 });
  await call("webhooks.rotateSigningSecret", made.id);
  await call("webhooks.remove", made.id);
  const { Webhook } = await import("standardwebhooks");
  const id = "msg_1", at = new Date(), payload = JSON.stringify({ type: "email.sent" });
  answers["webhooks.verify"] = client.webhooks.verify({ payload, webhookSecret: made.signing_secret,
    headers: { id, timestamp: String(Math.floor(at / 1000)), signature: new Webhook(made.signing_secret).sign(id, at, payload) } });
}

async function account() {
  const key = await call("apiKeys.create", { name: "printer", permission: "sending_access" });
  await call("apiKeys.list", { limit: 1 });
  await call("apiKeys.update", key.id, { name: "plotter" });
  await call("apiKeys.remove", key.id);
  const [log] = (await call("logs.list", { limit: 1 })).data;
  await call("logs.get", log.id);
  await call("usage.get");
  await call("oauthGrants.list", { limit: 1 });
  await call("oauthGrants.revoke", GRANT_ID);
}

async function ends({ topic, property, contact, segment, old }) {
  await call("topics.remove", topic.id);
  await call("contactProperties.remove", property.id);
  await call("contacts.remove", { id: contact.id });
  await call("segments.remove", segment.id);
  await call("audiences.remove", old.id);
}

const failures = [];
const section = async (steps) => {
  try {
    return await steps();
  } catch (error) {
    failures.push(`${error.message}`);
  }
};

await section(emails);
await section(received);
await section(inboxes);
await section(domains);
const made = await section(audience);
const template = await section(templates);
await section(() => broadcasts(made));
await section(() => automations(made, template));
await section(suppressions);
await section(webhooks);
await section(account);
await section(() => ends(made));
const missing = methodsOf(client).filter((method) => !(method in answers));
console.log(JSON.stringify({ answers, failures, missing }));
