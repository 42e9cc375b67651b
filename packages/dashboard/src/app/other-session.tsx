import { visibleText } from '@runyard/contract/wire/visible';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { dropDrafts } from '../api/drafts.ts';
import { clientOf } from '../api/session.ts';
import type { SessionAnswer } from './signed-in.tsx';

/** Asks whether to continue with a session that did not begin on this page. */
export function OtherSession({ answer, agree }: { answer: SessionAnswer; agree: () => void }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const signOut = async () => {
    await clientOf(answer.csrf_token ?? '').endBrowserSession();
    dropDrafts();
    queries.removeQueries({ queryKey: ['session'] });
    await navigate({ to: '/sign-in' });
  };
  const name = answer.user.display_name ?? answer.user.uid;
  return (
    <main className="pad stack" id="main">
      <h1>Is this you?</h1>
      <p>
        This browser is signed in as <b>{visibleText(name)}</b>, but nobody signed in on this page. Another program on{' '}
        <code>{location.hostname}</code> may have done it, so that you work in its account.
      </p>
      <p className="row">
        <button type="button" className="btn pri" onClick={() => void signOut()}>
          Sign out
        </button>
        <button type="button" className="btn" onClick={agree}>
          Continue as {visibleText(name)}
        </button>
      </p>
    </main>
  );
}
