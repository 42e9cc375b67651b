/**
 * Writes `openapi.json`: the operations of GitHub's OpenAPI description that the fake serves. The whole description (`@octokit/openapi`)
 * has 400 MB, so it is no dependency. Usage:
 *   npm pack @octokit/openapi && tar xzf octokit-openapi-*.tgz package/generated/api.github.com.json
 *   bin/with-node node test/fakes/github/cut-openapi.ts package/generated/api.github.com.json
 */
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';

const operations: readonly (readonly [method: string, path: string])[] = [
  ['get', '/app'],
  ['get', '/app/hook/deliveries'],
  ['get', '/app/hook/deliveries/{delivery_id}'],
  ['get', '/app/installations/{installation_id}'],
  ['post', '/app/installations/{installation_id}/access_tokens'],
  ['post', '/app-manifests/{code}/conversions'],
  ['get', '/user'],
  ['get', '/user/memberships/orgs/{org}'],
  ['get', '/repos/{owner}/{repo}/issues/{issue_number}/comments'],
  ['post', '/repos/{owner}/{repo}/issues/{issue_number}/comments'],
  ['get', '/repos/{owner}/{repo}/issues/comments/{comment_id}'],
  ['patch', '/repos/{owner}/{repo}/issues/comments/{comment_id}'],
  ['get', '/repos/{owner}/{repo}/installation'],
  ['get', '/repos/{owner}/{repo}'],
  ['get', '/repos/{owner}/{repo}/git/ref/{ref}'],
  ['post', '/repos/{owner}/{repo}/git/refs'],
  ['delete', '/repos/{owner}/{repo}/git/refs/{ref}'],
  ['put', '/repos/{owner}/{repo}/contents/{path}'],
  ['post', '/repos/{owner}/{repo}/issues'],
  ['patch', '/repos/{owner}/{repo}/issues/{issue_number}'],
  ['post', '/repos/{owner}/{repo}/pulls'],
  ['get', '/repos/{owner}/{repo}/pulls/{pull_number}'],
  ['get', '/repos/{owner}/{repo}/pulls/{pull_number}/comments'],
  ['get', '/repos/{owner}/{repo}/pulls/{pull_number}/reviews/{review_id}/comments'],
  ['get', '/repos/{owner}/{repo}/commits/{ref}/check-runs'],
  ['post', '/repos/{owner}/{repo}/pulls/{pull_number}/comments/{comment_id}/replies'],
  ['get', '/repos/{owner}/{repo}/pulls/{pull_number}/reviews'],
  ['post', '/repos/{owner}/{repo}/pulls/{pull_number}/reviews'],
  ['post', '/repos/{owner}/{repo}/pulls/{pull_number}/requested_reviewers'],
  ['post', '/repos/{owner}/{repo}/issues/{issue_number}/labels'],
  ['post', '/repos/{owner}/{repo}/check-runs'],
  ['patch', '/repos/{owner}/{repo}/check-runs/{check_run_id}'],
  ['get', '/repos/{owner}/{repo}/pulls/comments/{comment_id}'],
  ['patch', '/repos/{owner}/{repo}/pulls/comments/{comment_id}'],
];

/** Members of a schema that do not decide whether a value is valid. */
const remarks = new Set(['description', 'example', 'examples', 'title', 'externalDocs', 'summary', 'x-github', 'tags']);

type Json = { readonly [name: string]: Json } | readonly Json[] | string | number | boolean | null;

/** Returns a schema without remarks. `isMap`: the names of the members belong to the schema's author, so all of them stay. */
function withoutRemarks(value: Json, isMap = false): Json {
  if (Array.isArray(value)) return value.map((each) => withoutRemarks(each));
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value as Record<string, Json>).filter(([name]) => isMap || !remarks.has(name));
  return Object.fromEntries(
    members.map(([name, each]) => [name, withoutRemarks(each, !isMap && name === 'properties')]),
  );
}

const at = (value: Json | undefined, ...names: readonly string[]): Json | undefined =>
  names.reduce<Json | undefined>((found, name) => Reflect.get(Object(found), name) as Json | undefined, value);

const [file = ''] = process.argv.slice(2);
const document = JSON.parse(await readFile(file, 'utf8')) as Json;
const schemas: Record<string, Json> = {};

/** Adds the schemas that a value refers to. */
function collect(value: Json | undefined): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [name, each] of Object.entries(value)) {
    const [, schema] = name === '$ref' ? (/^#\/components\/schemas\/(.+)$/.exec(String(each)) ?? []) : [];
    if (schema === undefined) collect(each as Json);
    else if (schemas[schema] === undefined) {
      schemas[schema] = withoutRemarks(at(document, 'components', 'schemas', schema) ?? {});
      collect(schemas[schema]);
    }
  }
}

const jsonOf = (part: Json | undefined): Json | undefined => {
  const schema = at(part, 'content', 'application/json', 'schema');
  return schema === undefined ? undefined : withoutRemarks(schema);
};

/** Returns a part of the document that may be only a reference to another part. */
const resolved = (part: Json | undefined): Json | undefined => {
  const name = at(part, '$ref');
  return typeof name === 'string' ? at(document, ...name.slice(2).split('/')) : part;
};

const cut = operations.map(([method, name]) => {
  const operation = at(document, 'paths', name, method);
  if (operation === undefined) throw new Error(`GitHub has no ${method} ${name}`);
  const answers = Object.entries(Object(at(operation, 'responses')) as Record<string, Json>).map(
    ([status, answer]) => [status, jsonOf(resolved(answer)) ?? {}] as const,
  );
  return { method, path: name, body: jsonOf(at(operation, 'requestBody')), answers: Object.fromEntries(answers) };
});
collect(cut as unknown as Json);
const written = { version: at(document, 'info', 'version'), operations: cut, components: { schemas } };
await writeFile(path.join(import.meta.dirname, 'openapi.json'), `${JSON.stringify(written)}\n`);
