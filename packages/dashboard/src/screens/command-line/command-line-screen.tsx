import type { CommandLineQuery } from '@runyard/contract/team/command-line';
import { commandLineFingerprint, commandLineKeyLifetime, commandLineSeal } from '@runyard/contract/team/command-line';
import { visible, visibleText } from '@runyard/contract/wire/visible';
import { useQueryClient } from '@tanstack/react-query';
import { useLocation, useNavigate, useSearch } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { statusOf } from '../../api/problem.ts';
import { useSession } from '../../api/session.ts';
import { Page } from '../../frame/page.tsx';
import { oneOf, type Search } from '../../frame/search.ts';
import { P, Row, Stack } from '../../parts/blocks.tsx';
import { Button } from '../../parts/controls.tsx';
import { CommandBlock } from '../../parts/copy.tsx';
import { nameOf } from '../../parts/person.tsx';
import { Problem } from '../../parts/problem.tsx';

/** Reads the query of the page's address, which the command line has written. Returns null if the query is not complete. */
function readQuery(search: Search): CommandLineQuery | null {
  const [key, name, port, state] = ['key', 'name', 'port', 'state'].map((member) => oneOf(search[member]));
  if (key === undefined || !/^[\w-]{300,600}$/.test(key) || !name || name.length > 100) return null;
  if (port === undefined) return { key, name };
  const isWhole = /^\d{1,5}$/.test(port) && state !== undefined && /^[\w-]{20,100}$/.test(state);
  return isWhole ? { key, name, port, state } : null;
}

const toBytes = (text: string) => Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), byteOf);
const byteOf = (char: string) => char.charCodeAt(0);

const readPublicKey = async (text: string): Promise<CryptoKey> =>
  await crypto.subtle.importKey('spki', toBytes(text), commandLineSeal, false, ['encrypt']);

/** Encrypts a text with the public key of the command line, so that only this command line can decrypt it. Returns base64url. */
async function seal(text: string, key: CryptoKey): Promise<string> {
  const sealed = await crypto.subtle.encrypt({ name: commandLineSeal.name }, key, new TextEncoder().encode(text));
  const base64 = btoa(String.fromCharCode(...new Uint8Array(sealed)));
  return base64.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

/**
 * The button works only after this number of milliseconds, so that a click that was meant for the previous page does not allow anything.
 */
const readMs = 600;

/** Asks whether the command line may act as the person. If the person allows it, creates an API key and sends it to the command line. */
export function CommandLineScreen() {
  const { client, person, team } = useSession();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const { href } = useLocation();
  const query = readQuery(useSearch({ strict: false }));
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const [code, setCode] = useState<string | undefined>();
  const [fingerprint, setFingerprint] = useState<string | undefined>();
  const publicKey = query?.key;

  useEffect(() => {
    setFingerprint(undefined);
    if (publicKey === undefined) return;
    let isOld = false;
    const show = async () => {
      try {
        const found = await commandLineFingerprint(toBytes(publicKey));
        if (!isOld) setFingerprint(found);
      } catch (failure) {
        if (!isOld) setError(failure);
      }
    };
    const timer = setTimeout(() => void show(), readMs);
    return () => {
      isOld = true;
      clearTimeout(timer);
    };
  }, [publicKey]);

  const allow = async ({ key, name, port, state = '' }: CommandLineQuery) => {
    setBusy(true);
    setError(undefined);
    try {
      // Check the public key before creating the API key, because an API key that is encrypted with a malformed public key cannot be
      // decrypted.
      const sealFor = await readPublicKey(key);
      const made = await client.createKey({
        body: { name: `Command line, ${name}`.slice(0, 200), kind: 'personal', expires_in: commandLineKeyLifetime },
      });
      const sealed = await seal(`${made.uid} ${made.key}`, sealFor);
      if (port === undefined) setCode(sealed);
      else location.assign(`http://127.0.0.1:${port}/?${new URLSearchParams({ state, sealed })}`);
    } catch (failure) {
      setError(failure);
    }
    setBusy(false);
  };
  const signInAgain = async () => {
    await client.endBrowserSession();
    queries.clear();
    await navigate({ to: '/sign-in', search: { next: href } });
  };

  if (query === null)
    return (
      <Page title="Sign in the command line">
        <Stack pad>
          <p>This address is not complete. Start again with the command:</p>
          <CommandBlock command="bin/runyard login" />
        </Stack>
      </Page>
    );
  return (
    <Page title="Sign in the command line">
      <Stack pad>
        <p>
          The command line on <b>{visible(query.name)}</b> asks for a key with which it acts as <b>{nameOf(person)}</b>{' '}
          in {visibleText(team.name)} and your other teams. The key ends after 90 days, with{' '}
          <code>bin/runyard logout</code>, or when you leave the team.
        </p>
        <P tone="muted">
          Allow this only if you have just run <code>bin/runyard login</code> there yourself, and it shows the same
          fingerprint as this page:
        </P>
        <P mono>{fingerprint ?? '…'}</P>
        <Problem error={error} />
        {statusOf(error) === 403 && (
          <Button start onClick={() => void signInAgain()}>
            Sign in again
          </Button>
        )}
        {code === undefined ? (
          <Row>
            <Button kind="primary" disabled={isBusy || fingerprint === undefined} onClick={() => void allow(query)}>
              Allow
            </Button>
            <Button onClick={() => void navigate({ to: '/runs' })}>Do not allow</Button>
          </Row>
        ) : (
          <>
            <p>
              Paste this into the command, which waits for it. Give it to nobody else: it lets its owner act as you.
            </p>
            <CommandBlock command={code} what="Copy code" />
          </>
        )}
      </Stack>
    </Page>
  );
}
