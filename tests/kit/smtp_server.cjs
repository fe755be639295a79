// smtp-server, as a test starts it: argument 1 is "clear", "starttls" or "implicit", 2 the file of key and certificate.
// Prints its port, then a line of JSON for each message that it took; ends with its standard input.
const { createHash } = require("node:crypto");
const { readFileSync } = require("node:fs");
const { SMTPServer } = require("smtp-server");

const [kind, pem] = process.argv.slice(2);
const server = new SMTPServer({
  authOptional: true,
  secure: kind === "implicit",
  hideSTARTTLS: kind === "clear",
  key: readFileSync(pem),
  cert: readFileSync(pem),
  size: 90_000_000,
  logger: false,
  onData(stream, session, done) {
    const digest = createHash("sha256");
    let octets = 0;
    stream.on("data", (piece) => {
      octets += piece.length;
      digest.update(piece);
    });
    stream.on("end", () => {
      console.log(JSON.stringify({ octets, digest: digest.digest("hex"), secure: session.secure }));
      done(null, "taken");
    });
  },
});
server.on("error", (trouble) => console.error(trouble.message));
server.listen(0, "127.0.0.1", () => console.log(server.server.address().port));
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
