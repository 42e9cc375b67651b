import { html, htmlPage } from './html.ts';

const keyForm = html`<form id="key-form" hidden>
<h1>Open this run</h1>
<p>Enter an API key of the team. It stays in this tab and is forgotten when you close it. <code>bin/runyard open</code> signs you in without one.</p>
<label for="key">API key</label>
<input id="key" name="key" type="password" autocomplete="off" spellcheck="false" aria-describedby="key-problem" required>
<p id="key-problem" class="problem" role="alert"></p>
<button type="submit" class="primary">Open</button>
</form>`;

const missing = html`<section id="missing" aria-labelledby="missing-heading" hidden>
<h1 id="missing-heading" tabindex="-1">No such run</h1>
<p>There is no run with this id, or the key of this tab belongs to another team. A deleted run is gone too.</p>
<p>Check the address: <code>bin/runyard runs</code> lists the runs of your team. This tab keeps its key.</p>
<button id="other-key" type="button">Use another key</button>
</section>`;

const question = html`<section id="ask" class="ask" aria-labelledby="ask-heading" hidden>
<h2 id="ask-heading"></h2>
<p id="ask-tool" class="muted" hidden></p>
<p id="ask-title" class="asked"></p>
<pre id="ask-input" hidden></pre>
<ul id="ask-options"></ul>
<form id="ask-form">
<label id="ask-label" for="ask-text"></label>
<textarea id="ask-text" rows="2" aria-describedby="ask-problem"></textarea>
<p id="ask-problem" class="problem" role="alert"></p>
<div class="buttons">
<button id="approve" type="button" class="primary">Approve</button>
<button id="deny" type="button" class="danger">Deny</button>
<button id="answer" type="submit" class="primary">Answer</button>
</div>
</form>
</section>`;

const controls = html`<div id="controls" class="buttons" hidden>
<button id="interrupt" type="button" title="Ends the present turn. The agent stays and waits for a message.">Interrupt</button>
<button id="cancel" type="button" class="danger">Cancel run</button>
</div>
<p id="control-problem" class="problem" role="alert"></p>
<dialog id="cancel-dialog" class="dialog" aria-labelledby="cancel-heading">
<form method="dialog">
<h2 id="cancel-heading">Cancel this run?</h2>
<p>Its agent is stopped and its sandbox is closed, and so are the runs that it started.</p>
<div class="buttons">
<button value="keep" autofocus>Keep it running</button>
<button value="cancel" class="danger">Cancel the run</button>
</div>
</form>
</dialog>`;

const sendForm = html`<form id="send-form" class="send" hidden>
<label for="send-text">Message to the agent</label>
<textarea id="send-text" rows="3" aria-describedby="send-hint send-problem"></textarea>
<p id="send-hint" class="muted"></p>
<p id="send-problem" class="problem" role="alert"></p>
<div class="buttons"><button type="submit" class="primary">Send</button><span id="send-done" class="muted"></span></div>
</form>`;

/** Returns the page of a run without its content. The script reads the content with the key of the tab. */
export const runPage = (): string =>
  htmlPage({
    title: 'Run',
    modules: ['/assets/run/main.js'],
    body: html`<header class="bar"><p class="brand">Runyard</p><p class="session"><span id="signed-in" class="muted"></span> <button id="forget" type="button" hidden>Forget key</button></p></header>
<p id="announcer" class="heard" role="status"></p>
<p id="ask-announcer" class="heard" role="status"></p>
<main class="run" id="run">
<noscript><p>This page needs JavaScript. <code>bin/runyard logs</code> shows the same in a terminal.</p></noscript>
${keyForm}
${missing}
<p id="problem" class="problem" role="alert"></p>
<div id="view" hidden>
<p id="parent" class="eyebrow" hidden><a>The run that started this one</a></p>
<p class="eyebrow"><span id="state" class="state"></span> <span id="live" class="muted"></span></p>
<h1 id="title" tabindex="-1"></h1>
<p id="message" class="message" hidden></p>
${question}
${controls}
<dl class="facts" id="facts"></dl>
<section aria-labelledby="withheld-heading" id="withheld-section" hidden><h2 id="withheld-heading">Withheld from this run</h2><ul id="withheld" class="rows"></ul></section>
<section aria-labelledby="children-heading" id="children-section" hidden><h2 id="children-heading">Runs that it started</h2><ul id="children" class="rows"></ul></section>
<section aria-labelledby="artifacts-heading" id="artifacts-section" hidden><h2 id="artifacts-heading">Artifacts</h2><ul id="artifacts" class="rows"></ul></section>
<div class="columns">
<section aria-labelledby="conversation-heading"><h2 id="conversation-heading">Conversation</h2><div id="conversation" class="conversation"></div>
<article class="said prompt" data-role="prompt"><span class="who">prompt, which the agent has not begun</span><div id="prompt" class="markdown"></div></article>
${sendForm}</section>
<section aria-labelledby="timeline-heading"><h2 id="timeline-heading">Timeline</h2><ol id="timeline"></ol></section>
</div>
</div>
</main>`,
  });
