import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { createFieldMask } from "../lib/field_mask.ts";
import { decodePod, type PodField } from "../lib/pod.ts";
import { PodSchema } from "../proto/gen/pod_pb.js";

const bytes = toBinary(
  PodSchema,
  create(PodSchema, {
    metadata: {
      name: "etcd-node-1",
      namespace: "kube-system",
      uid: "uid-1",
      deletionTimestamp: { seconds: 7n },
      annotations: {
        "kubernetes.io/config.source": "file",
        "kubernetes.io/config.seen": "2026-01-01T00:00:00Z",
      },
    },
    spec: { nodeName: "node-1", containers: [{ name: "etcd", image: "registry.example/etcd:1" }] },
    status: {
      phase: "Running",
      reason: "why",
      message: "what",
      startTime: { seconds: 9n },
      conditions: [{ type: "Ready", status: "True", reason: "r", lastTransitionTime: { seconds: 8n } }],
      containerStatuses: [{ name: "etcd", ready: true, restartCount: 2 }],
    },
  }),
);
const whole = decodePod(bytes);

describe("a choice of fields", () => {
  test("each field by itself reads as it does in a whole pod, and no other is there", () => {
    for (const field of Object.keys(whole) as PodField[]) {
      const { parts, pick } = createFieldMask([field]);
      assert.deepEqual(pick(decodePod(bytes, "all", parts)), { [field]: whole[field] }, field);
      assert.notDeepEqual(whole[field], [], `${field} is not empty in this test`);
    }
  });

  test("all of them are a whole pod", () => {
    const { parts, pick } = createFieldMask(Object.keys(whole) as PodField[]);
    assert.deepEqual(pick(decodePod(bytes, "all", parts)), whole);
  });

  test("what is not chosen is not decoded", () => {
    const { parts } = createFieldMask(["name"]);
    const pod = decodePod(bytes, "all", parts);
    assert.deepEqual([pod.phase, pod.containers, pod.images, pod.source], ["", [], [], ""]);
    assert.deepEqual(decodePod(bytes, "all", createFieldMask(["phase"]).parts).containers, []);
  });

  test("a server is asked for paths in the words of core/v1, each once", () => {
    assert.equal(
      createFieldMask(["namespace", "name", "phase"]).header,
      "metadata.namespace,metadata.name,status.phase",
    );
    assert.equal(createFieldMask(["ready", "readySinceMs", "ready"]).header, "status.conditions");
    assert.equal(createFieldMask(["images"]).header, "metadata.annotations,spec.containers");
  });

  test("no field, and one that a pod does not have, are refused", () => {
    assert.throws(() => createFieldMask([]), RangeError);
    assert.throws(() => createFieldMask(["toString" as PodField]), /"toString"/);
  });
});
