import { html, htmlPage } from './html.ts';

/** The shell of a run's page. It holds nothing of the run: the script reads that with the key that a person types in. */
export const runPage = (): string =>
  htmlPage({
    title: 'Run',
    scripts: ['/assets/run-page.js'],
    body: html`<header class="bar"><p class="brand">Runyard</p><button id="forget" type="button" hidden>Forget key</button></header>
<main class="run" id="run">
<noscript><p>This page needs JavaScript. <code>runyard logs</code> shows the same in a terminal.</p></noscript>
<form id="key-form" hidden>
<h1>Open this run</h1>
<p>Enter an API key of the team. It stays in this tab and is forgotten when you close it.</p>
<label for="key">API key</label>
<input id="key" name="key" type="password" autocomplete="off" spellcheck="false" required>
<p id="key-problem" class="problem" role="alert"></p>
<button type="submit">Open</button>
</form>
<div id="view" hidden>
<p class="eyebrow"><span id="state" class="state" role="status"></span> <span id="live" class="muted"></span></p>
<h1 id="title"></h1>
<p id="problem" class="problem" role="alert"></p>
<p id="message" class="message" hidden></p>
<dl class="facts" id="facts"></dl>
<section aria-labelledby="artifacts-heading" id="artifacts-section" hidden><h2 id="artifacts-heading">Artifacts</h2><ul id="artifacts"></ul></section>
<div class="columns">
<section aria-labelledby="conversation-heading"><h2 id="conversation-heading">Conversation</h2><div id="conversation" class="conversation" aria-live="polite"></div></section>
<section aria-labelledby="timeline-heading"><h2 id="timeline-heading">Timeline</h2><ol id="timeline"></ol></section>
</div>
</div>
</main>`,
  });
