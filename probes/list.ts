import type { Check } from "../lib/check.ts";
import { manifests } from "./manifests.ts";
import { rateLimit } from "./rate_limit.ts";
import { ready } from "./ready.ts";
import { socket } from "./socket.ts";
import { staticPods } from "./static_pods.ts";
import { watch } from "./watch.ts";

/** Every check, in the order `all` runs them: what uses up the rate limit comes last. */
export const checks: readonly Check[] = [socket, ready, manifests, staticPods, watch, rateLimit];
