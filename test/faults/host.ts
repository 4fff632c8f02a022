// The servers of the faults, in a thread of their own: one that floods its client would hold up the suite's clock.

import { parentPort } from "node:worker_threads";
import { startSimulator } from "../../lib/simulator.ts";
import { serveFault } from "./servers.ts";

/** Starts a server, or with no `scenario` and `fault` ends the one of this id. */
export interface Order {
  readonly id: number;
  readonly path: string;
  readonly scenario?: string;
  readonly fault?: string;
}

/** It is done; `error` says why not. */
export interface Done {
  readonly id: number;
  readonly error?: string;
}

const servers = new Map<number, { close(): Promise<void> }>();

async function obey({ id, path, scenario, fault }: Order): Promise<void> {
  if (scenario !== undefined) servers.set(id, await startSimulator({ socket: path, scenario }));
  else if (fault !== undefined) servers.set(id, await serveFault(fault, path));
  else {
    await servers.get(id)?.close();
    servers.delete(id);
  }
}

parentPort!.on("message", (order: Order) => {
  obey(order).then(
    () => parentPort!.postMessage({ id: order.id } satisfies Done),
    (error) => parentPort!.postMessage({ id: order.id, error: String(error) } satisfies Done),
  );
});
