/** For tests: a self-signed certificate. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { isIP } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

export function certificateFor(name: string): Certificate {
  const folder = mkdtempSync(join(tmpdir(), "http-"));
  const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  const subject = ["-subj", `/CN=${name}`, "-addext", `subjectAltName=${isIP(name) ? "IP" : "DNS"}:${name}`];
  const form = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1"];
  try {
    execFileSync("openssl", ["req", ...form, ...subject, "-keyout", key, "-out", cert], { stdio: "ignore" });
    return { cert: readFileSync(cert, "utf8"), key: readFileSync(key, "utf8") };
  } finally {
    rmSync(folder, { recursive: true });
  }
}
