// Which URL of the kubelet's metrics is taken, and what goes with it. lib/fetch_metrics.ts asks it.

/** Files to prove who asks, and whom to believe; the names are those of Prometheus' `tls_config`. */
export interface MetricsCredentials {
  /** Holds a bearer token; read at each scrape, for the kubelet renews a token that is mounted. */
  readonly tokenFile?: string | undefined;
  /** Certificates that the server's has to be signed by. */
  readonly caFile?: string | undefined;
  readonly certFile?: string | undefined;
  readonly keyFile?: string | undefined;
}

/** Whether a source of metrics is no file. */
export function isUrl(source: string): boolean {
  return /^https?:/i.test(source);
}

/** Whether a host, as `URL` spells it, is this machine. */
export function isLoopback(hostname: string): boolean {
  return /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
}

/** @returns What is wrong with a URL and its credentials, without a word of the URL: it may hold a password. */
export function urlMisuse(source: string | undefined, credentials: MetricsCredentials): string | undefined {
  const { tokenFile, caFile, certFile, keyFile } = credentials;
  if (source === undefined || !isUrl(source)) {
    const isGiven = (tokenFile ?? caFile ?? certFile ?? keyFile) !== undefined;
    return isGiven ? "--token-file, --ca-file, --cert-file and --key-file go with --metrics URL" : undefined;
  }
  if (!URL.canParse(source)) return `--metrics is no URL: accepted is ${acceptedUrl}`;
  const { protocol, hostname, username, password, search, hash } = new URL(source);
  if (username + password + search + hash !== "") {
    return `--metrics is a URL with a user, a query or a fragment: accepted is ${acceptedUrl}`;
  }
  if (protocol === "http:") {
    if (!isLoopback(hostname)) return "--metrics is an http URL of another machine: accepted is https";
    return (tokenFile ?? caFile ?? certFile ?? keyFile) === undefined
      ? undefined
      : "--token-file, --ca-file, --cert-file and --key-file go with https, and --metrics is http";
  }
  if (caFile === undefined) {
    return "--metrics with https needs --ca-file, what the kubelet's certificate is signed by; of a self-signed one that is /var/lib/kubelet/pki/kubelet.crt";
  }
  return (certFile === undefined) === (keyFile === undefined)
    ? undefined
    : "--cert-file and --key-file go together: one of them is missing";
}

const acceptedUrl = "https://HOST:PORT/metrics, or http for 127.0.0.1, [::1] and localhost";
