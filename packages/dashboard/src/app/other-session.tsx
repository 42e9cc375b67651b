import { visibleText } from '@runyard/contract/wire/visible';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { dropDrafts } from '../api/drafts.ts';
import { clientOf } from '../api/session.ts';
import { Row, Stack } from '../parts/blocks.tsx';
import { Button } from '../parts/controls.tsx';
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
    <Stack as="main" pad id="main">
      <h1>Is this you?</h1>
      <p>
        This browser is signed in as <b>{visibleText(name)}</b>, but nobody signed in on this page. Another program on{' '}
        <code>{location.hostname}</code> may have done it, so that you work in its account.
      </p>
      <Row as="p">
        <Button kind="primary" onClick={() => void signOut()}>
          Sign out
        </Button>
        <Button onClick={agree}>Continue as {visibleText(name)}</Button>
      </Row>
    </Stack>
  );
}
