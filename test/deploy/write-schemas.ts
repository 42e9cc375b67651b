/** Program: writes the JSON schemas that kubeconform reads, from the OpenAPI document of Kubernetes. Started by bin/prepare-deploy.sh. */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';

interface Definition {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, object>>;
  readonly additionalProperties?: unknown;
  readonly 'x-kubernetes-group-version-kind'?: readonly { group: string; version: string; kind: string }[];
}

const [document = '', folder = ''] = process.argv.slice(2);
const { definitions } = JSON.parse(readFileSync(document, 'utf8')) as { definitions: Record<string, Definition> };
const making = `${folder}.making`;
mkdirSync(making, { recursive: true });

/** The definitions, changed so that they refuse unknown members, like an API server with strict validation. */
const strict = Object.fromEntries(
  Object.entries(definitions).map(([name, definition]) => [
    name,
    /intstr\.IntOrString$|resource\.Quantity$/.test(name)
      ? { type: ['string', 'number'] }
      : definition.properties === undefined || definition.additionalProperties !== undefined
        ? definition
        : { ...definition, additionalProperties: false },
  ]),
);
writeFileSync(path.join(making, '_definitions.json'), JSON.stringify({ definitions: strict }));
for (const [name, definition] of Object.entries(definitions)) {
  for (const { group, version, kind } of definition['x-kubernetes-group-version-kind'] ?? []) {
    // kubeconform expects only the first part of the API group in the file name.
    const file = [kind, group.split('.')[0], version].filter(Boolean).join('-').toLowerCase();
    writeFileSync(
      path.join(making, `${file}.json`),
      JSON.stringify({ $ref: `_definitions.json#/definitions/${name}` }),
    );
  }
}
renameSync(making, folder);
