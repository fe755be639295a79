// Asks the browser for a passkey, as the form says, and sends the form with the answer. Everything else of
// the pages works without scripts.
"use strict";

(() => {
  const form = document.querySelector("form[data-passkey]");
  if (!form) return;
  const status = form.querySelector("[role=status]");
  const button = form.querySelector("button");

  const octets = (text) =>
    Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (letter) => letter.charCodeAt(0));
  const base64url = (buffer) =>
    btoa(Array.from(new Uint8Array(buffer), (octet) => String.fromCharCode(octet)).join(""))
      .replace(/\+/g, "-")
      .replace(/\//g, "_")
      .replace(/=+$/, "");
  const described = (list) => (list || []).map((one) => ({ ...one, id: octets(one.id) }));

  const made = async (options) => {
    const found = await navigator.credentials.create({
      publicKey: {
        ...options,
        challenge: octets(options.challenge),
        user: { ...options.user, id: octets(options.user.id) },
        excludeCredentials: described(options.excludeCredentials),
      },
    });
    const transports = found.response.getTransports ? found.response.getTransports() : [];
    return [found, { attestationObject: base64url(found.response.attestationObject), transports }];
  };

  const signed = async (options) => {
    const found = await navigator.credentials.get({
      publicKey: {
        ...options,
        challenge: octets(options.challenge),
        allowCredentials: described(options.allowCredentials),
      },
    });
    const { authenticatorData, signature, userHandle } = found.response;
    const shown = { authenticatorData: base64url(authenticatorData), signature: base64url(signature) };
    return [found, userHandle ? { ...shown, userHandle: base64url(userHandle) } : shown];
  };

  const ask = async () => {
    button.disabled = true;
    status.textContent = form.dataset.waiting;
    try {
      const options = JSON.parse(form.dataset.options);
      const [found, response] = await (form.dataset.passkey === "make" ? made : signed)(options);
      form.elements.answer.value = JSON.stringify({
        id: found.id,
        rawId: base64url(found.rawId),
        type: found.type,
        response: { ...response, clientDataJSON: base64url(found.response.clientDataJSON) },
      });
      form.submit();
    } catch (error) {
      const known = error.name === "InvalidStateError" && form.dataset.passkey === "make";
      const elsewhere = error.name === "SecurityError";
      status.textContent = known ? form.dataset.known : elsewhere ? form.dataset.elsewhere : form.dataset.refused;
      button.disabled = false;
    }
  };

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    ask();
  });
  if (!window.PublicKeyCredential) {
    status.textContent = form.dataset.unable;
    button.disabled = true;
  } else if (form.dataset.passkey !== "make") {
    ask();
  }
})();
