// Loaded before a program of Node: it reaches this machine and no other, whatever it wants to ask there.
const real = globalThis.fetch;
globalThis.fetch = (wanted, options) => {
  const { hostname } = new URL(wanted instanceof Request ? wanted.url : wanted);
  return ["127.0.0.1", "localhost"].includes(hostname)
    ? real(wanted, options)
    : Promise.reject(new TypeError(`tests talk to loopback only, not to ${hostname}`));
};
