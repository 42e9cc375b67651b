/** Starts the page of a run: signs in, and shows the run or why it cannot be shown. */
import { call, dropKey, exchangeCode, hasKey, keepKey, Refused, signedInName } from './api.js';
import { connectControls } from './controls.js';
import { clearStory } from './conversation.js';
import { by } from './elements.js';
import { refreshAfterAction, refreshRun, watch } from './follow.js';
import { insist } from './insist.js';

const parts = ['key-form', 'missing', 'view'];

/** Shows one part of the page; undefined: none. */
function show(part) {
  for (const each of parts) by(each).hidden = each !== part;
  by('forget').hidden = !hasKey();
  const name = signedInName();
  by('forget').textContent = name === null ? 'Forget key' : 'Sign out';
  by('signed-in').textContent = name === null ? '' : `Signed in as ${name}`;
}

function askForKey(problem = '') {
  dropKey();
  show('key-form');
  document.title = 'Run · Runyard';
  by('key-problem').textContent = problem;
  by('key').value = '';
  by('key').focus();
}

function showMissing() {
  show('missing');
  document.title = 'No such run · Runyard';
  by('missing-heading').focus();
}

async function open() {
  show(undefined);
  by('problem').textContent = '';
  try {
    clearStory();
    await insist(refreshRun);
    show('view');
    by('title').focus({ preventScroll: true });
    await watch();
  } catch (error) {
    if (error instanceof Refused && error.status === 401)
      return askForKey(
        signedInName() === null
          ? 'This key is not valid.'
          : 'The session has ended. Run "runyard open" again, or enter a key.',
      );
    if (error instanceof Refused && error.status === 404) return showMissing();
    by('problem').textContent = `${error.message} Reload the page to try again.`;
  }
}

/** Ends the session of a link, and asks again until the service has; a key that was typed in is only removed from the tab. */
async function forgetKey() {
  if (signedInName() !== null)
    await insist(() => call('/browser-sessions/current', { method: 'DELETE' })).catch((error) => {
      // The service refuses the key of a session that has ended.
      if (!(error instanceof Refused)) throw error;
    });
  dropKey();
}

/** Signs in with the code of the link, which is in the fragment: browsers send that to no server. */
async function signIn(code) {
  try {
    const { key, display_name: name } = await exchangeCode(code);
    keepKey(key, name);
    await open();
  } catch (error) {
    askForKey(error.message);
  }
}

by('key-form').addEventListener('submit', (event) => {
  event.preventDefault();
  keepKey(by('key').value.trim());
  open();
});
by('forget').addEventListener('click', () => forgetKey().then(() => location.reload()));
by('other-key').addEventListener('click', () => forgetKey().then(() => askForKey()));
connectControls(refreshAfterAction);

const code = /^#sign-in=([\w-]+)$/.exec(location.hash)?.[1];
// Removes the code from the address bar and the history before anything else happens.
if (location.hash.startsWith('#sign-in=')) history.replaceState(null, '', location.pathname);
// A tab that has a key keeps it, so a link from elsewhere cannot change the person who acts in it.
if (hasKey()) open();
else if (code) signIn(code);
else askForKey();
