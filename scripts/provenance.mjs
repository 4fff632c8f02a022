// `node scripts/provenance.mjs`, in a GitHub workflow: the predicate of a SLSA provenance, version 1, for what it builds.
import { fail } from "./tools.mjs";

const env = (name) =>
  process.env[name] ?? fail(`Cannot tell the provenance: ${name} is not set; this is for a workflow`);
const repository = `${env("GITHUB_SERVER_URL")}/${env("GITHUB_REPOSITORY")}`;

const predicate = {
  buildDefinition: {
    buildType: "https://actions.github.io/buildtypes/workflow/v1",
    externalParameters: {
      workflow: {
        ref: env("GITHUB_REF"),
        repository,
        path: env("GITHUB_WORKFLOW_REF")
          .replace(`${env("GITHUB_REPOSITORY")}/`, "")
          .replace(/@.*/, ""),
      },
    },
    internalParameters: {
      github: { event_name: env("GITHUB_EVENT_NAME"), repository_id: env("GITHUB_REPOSITORY_ID") },
    },
    resolvedDependencies: [{ uri: `git+${repository}@${env("GITHUB_REF")}`, digest: { gitCommit: env("GITHUB_SHA") } }],
  },
  runDetails: {
    builder: { id: `${env("GITHUB_SERVER_URL")}/${env("GITHUB_WORKFLOW_REF")}` },
    metadata: {
      invocationId: `${repository}/actions/runs/${env("GITHUB_RUN_ID")}/attempts/${env("GITHUB_RUN_ATTEMPT")}`,
    },
  },
};
console.log(JSON.stringify(predicate, null, 2));
