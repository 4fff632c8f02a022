import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { urlMisuse } from "../lib/metrics_url.ts";

const caFile = "/ca.crt";
const https = "https://127.0.0.1:10250/metrics";

describe("a URL of metrics", () => {
  test("is https with what to believe, or http of this machine", () => {
    for (const url of [https, "HTTPS://[fd00::1]:10250/metrics", "https://node-1.example:10250/metrics"]) {
      assert.equal(urlMisuse(url, { caFile }), undefined, url);
      assert.equal(urlMisuse(url, { caFile, tokenFile: "/t", certFile: "/c", keyFile: "/k" }), undefined, url);
      assert.match(urlMisuse(url, { tokenFile: "/t" })!, /needs --ca-file/);
    }
    for (const host of ["127.0.0.1:10255", "127.8.7.6", "localhost:8001", "[::1]:1"]) {
      assert.equal(urlMisuse(`http://${host}/metrics`, {}), undefined, host);
    }
    for (const host of ["10.0.0.1", "localhost.example", "127.0.0.1.example", "[::2]", "0.0.0.0"]) {
      assert.match(urlMisuse(`http://${host}/metrics`, {})!, /an http URL of another machine/, host);
    }
  });

  test("takes no credential to http", () => {
    for (const credentials of [{ tokenFile: "/t" }, { caFile }, { certFile: "/c" }, { keyFile: "/k" }]) {
      assert.match(urlMisuse("http://127.0.0.1:8001/metrics", credentials)!, /go with https/);
    }
  });

  test("a certificate needs its key, and the other way round", () => {
    assert.match(urlMisuse(https, { caFile, certFile: "/c" })!, /go together/);
    assert.match(urlMisuse(https, { caFile, keyFile: "/k" })!, /go together/);
  });

  test("credentials go with no file", () => {
    assert.equal(urlMisuse("/metrics.prom", {}), undefined);
    assert.match(urlMisuse("/metrics.prom", { tokenFile: "/t" })!, /go with --metrics URL/);
    assert.match(urlMisuse(undefined, { keyFile: "/k" })!, /go with --metrics URL/);
  });

  test("what is refused is not shown: it may hold a password", () => {
    for (const url of [
      "https://root:canary@127.0.0.1/metrics",
      "https://canary@127.0.0.1/metrics",
      "https://127.0.0.1/metrics?token=canary",
      "https://127.0.0.1/metrics#canary",
      "https://root:canary@:x/",
      "http://root:canary@10.0.0.1/",
    ]) {
      const message = urlMisuse(url, { caFile });
      assert.match(message!, /^--metrics is .*: accepted is https:\/\/HOST:PORT\/metrics/);
      assert.doesNotMatch(message!, /canary/);
    }
  });
});
