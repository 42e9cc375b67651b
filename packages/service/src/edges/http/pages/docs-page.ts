import { routeTags } from '@runyard/contract/wire/route';
import { type Html, html, htmlPage, prose } from './html.ts';
import {
  describeMembers,
  describeReference,
  type JsonSchema,
  memberRow,
  type NamedSchemas,
  schemaView,
  typeOf,
} from './schema-view.ts';

interface Body {
  readonly content?: Readonly<Record<string, { readonly schema: JsonSchema; readonly example?: unknown }>>;
}

interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly deprecated?: boolean;
  readonly security: readonly Readonly<Record<string, unknown>>[];
  readonly parameters: readonly {
    name: string;
    in: string;
    required: boolean;
    description?: string;
    schema: JsonSchema;
  }[];
  readonly requestBody?: Body;
  readonly 'x-codeSamples': readonly { readonly source: string }[];
  readonly responses: Readonly<Record<string, Body & { readonly description: string }>>;
}

interface ApiDocument {
  readonly servers: readonly { readonly url: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: NamedSchemas };
}

function bodyType(body: Body | undefined): Html {
  const [type, content] = Object.entries(body?.content ?? {})[0] ?? [];
  if (!type || !content) return html``;
  return type === 'application/json' ? typeOf(content.schema) : html`<code>${type}</code>`;
}

/** Returns the view of an operation's example: the request as a command, and the answer. */
function exampleView(operation: Operation): Html {
  const [sample] = operation['x-codeSamples'];
  const [content] = Object.values(Object.values(operation.responses)[0]?.content ?? {});
  const answer = typeof content?.example === 'string' ? content.example : JSON.stringify(content?.example, null, 2);
  return html`<details><summary>Example</summary><pre><code>${sample?.source ?? ''}</code></pre>${
    content?.example === undefined ? '' : html`<p>Answer</p><pre><code>${answer}</code></pre>`
  }</details>`;
}

function security(operation: Operation): string {
  const names = operation.security.flatMap((each) => Object.keys(each));
  if (names.includes('runToken')) return 'Run token';
  if (!names.includes('apiKey')) return 'No key';
  const key = names.includes('browserSession') ? 'API key or session' : 'API key';
  return operation.security.some((each) => Object.keys(each).length === 0) ? `${key}, unless public` : key;
}

function operationView(path: string, method: string, operation: Operation, schemas: NamedSchemas): Html {
  const parameters = operation.parameters.map((each) =>
    memberRow(
      each.name,
      describeReference({ ...each.schema, ...(each.description ? { description: each.description } : {}) }, schemas),
      each.required,
      `in ${each.in}`,
    ),
  );
  const responses = Object.entries(operation.responses).map(
    ([status, response]) =>
      html`<tr><td><code>${status}</code></td><td>${bodyType(response)}</td><td>${prose(response.description)}</td></tr>`,
  );
  return html`<article id="${operation.operationId}">
<h3><span class="method ${method}">${method.toUpperCase()}</span> <code>${path}</code></h3>
<p>${operation.deprecated ? html`<strong>Deprecated.</strong> ` : ''}${operation.summary}. ${prose(operation.description ?? '')}</p>
<p class="dim">${security(operation)}${operation.requestBody ? html` · body: ${bodyType(operation.requestBody)}` : ''}</p>
${parameters.length > 0 ? html`<details><summary>Parameters</summary><div class="scroll"><table><tbody>${parameters}</tbody></table></div></details>` : ''}
${exampleView(operation)}
<details><summary>Answers</summary><div class="scroll"><table><tbody>${responses}</tbody></table></div></details>
</article>`;
}

/** Returns the reference as a page that is complete without scripts. */
export function docsPage(document: ApiDocument): string {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  const base = document.servers[0]?.url ?? '';
  const tags = Object.entries(routeTags).map(([tag, meaning]) => ({
    tag,
    meaning,
    of: operations.filter(({ operation }) => operation.tags.includes(tag)),
  }));
  const navigation = tags.map(
    ({ tag, of }) =>
      html`<details class="nav"><summary>${tag}</summary><a href="#tag-${tag}">About ${tag}</a>${of.map(
        ({ operation }) => html`<a href="#${operation.operationId}">${operation.summary}</a>`,
      )}</details>`,
  );
  const sections = tags.map(
    ({ tag, meaning, of }) =>
      html`<section id="tag-${tag}"><h2>${tag}</h2><p>${meaning}.</p>${of.map(({ path, method, operation }) =>
        operationView(path, method, operation, document.components.schemas),
      )}</section>`,
  );
  const schemas = Object.entries(document.components.schemas).map(
    ([name, schema]) =>
      html`<article id="schema-${name}"><h3>${name}</h3>${schemaView(describeMembers(schema, document.components.schemas))}</article>`,
  );
  const [first] =
    operations.find(({ operation }) => operation.operationId === 'createRun')?.operation['x-codeSamples'] ?? [];
  return htmlPage({
    title: 'API reference',
    place: '/docs',
    body: html`<div class="docs">
<nav class="side" aria-label="Reference">${navigation}<div class="nav"><a href="#schemas">schemas</a></div></nav>
<main class="doc" id="main">
<h1>API reference</h1>
<p>Base URL <code>${base}</code>. JSON in and out; errors are <a href="/errors">problem documents</a>. The same reference as a file: <a href="/api/v1/openapi.json">OpenAPI 3.1</a>.</p>
<p>This creates a run that needs no language model: the model <code>runbook</code> runs the shell blocks of the prompt.
<code>RUNYARD_API_KEY</code> is your key, at first the content of the file <code>bootstrap-key</code> in the data folder; in the examples below,
variables such as <code>RUN_ID</code> are ids from earlier answers.</p>
<pre><code>${first?.source ?? ''}</code></pre>
${sections}
<section id="schemas"><h2>schemas</h2>${schemas}</section>
</main></div>`,
  });
}
