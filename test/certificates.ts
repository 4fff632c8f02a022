// Certificates for the tests of TLS, made with openssl.

import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

/** Reason to skip, or false. */
export const needsOpenssl: false | string =
  spawnSync("openssl", ["version"], { stdio: "ignore" }).status === 0 ? false : "needs openssl";

/** Paths of a certificate and its key. */
export interface Identity {
  readonly certFile: string;
  readonly keyFile: string;
}

/** What signs certificates. */
export interface Authority extends Identity {
  /**
   * Makes a certificate that is signed by this one.
   * @param names As openssl has them, such as `DNS:node-1,IP:127.0.0.1`.
   */
  issue(name: string, names: string): Identity;
}

/** Makes an authority in a folder; its files are `NAME.crt` and `NAME.key`. */
export function makeAuthority(folder: string, name: string): Authority {
  const pathsOf = (of: string): Identity => ({
    certFile: join(folder, `${of}.crt`),
    keyFile: join(folder, `${of}.key`),
  });
  const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  const own = pathsOf(name);
  const [subject, life] = [
    ["-subj", `/CN=${name}`],
    ["-days", "2"],
  ];
  openssl("req", "-x509", ...newKey, ...subject, ...life, "-keyout", own.keyFile, "-out", own.certFile);
  return {
    ...own,
    issue(of, names) {
      const made = pathsOf(of);
      const [request, extensions] = [join(folder, `${of}.csr`), join(folder, `${of}.ext`)];
      writeFileSync(extensions, `subjectAltName=${names}\n`);
      openssl("req", ...newKey, "-subj", `/CN=${of}`, "-keyout", made.keyFile, "-out", request);
      const signer = ["-CA", own.certFile, "-CAkey", own.keyFile, "-CAcreateserial"];
      openssl("x509", "-req", "-in", request, ...signer, ...life, "-extfile", extensions, "-out", made.certFile);
      return made;
    },
  };
}

function openssl(...words: readonly string[]): void {
  const { status, stderr } = spawnSync("openssl", words, { encoding: "utf8" });
  if (status !== 0) throw new Error(`openssl ${words.join(" ")}: ${stderr}`);
}
