import type { SignOnProvider } from '@runyard/contract/team/sign-on';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQuery } from '@tanstack/react-query';
import { clientOf } from '../../api/session.ts';
import { Button } from '../../parts/controls.tsx';

/**
 * Reads the identity providers for single sign-on. Returns undefined until the answer has arrived, and an empty list if there are no
 * providers.
 */
export function useProviders(): readonly SignOnProvider[] | undefined {
  const { data, isError } = useQuery({
    queryKey: ['sign-on'],
    queryFn: async () => (await clientOf('').listSignOnProviders()).providers,
    staleTime: Number.POSITIVE_INFINITY,
  });
  return isError ? [] : data;
}

/**
 * Returns the query that an identity provider added to the address when it sent the browser back. Returns undefined if the query is not
 * from a provider.
 */
export function answerOfProvider(query: string): string | undefined {
  const members = new URLSearchParams(query);
  return members.has('state') && (members.has('code') || members.has('error')) ? query : undefined;
}

/** Shows a button for each identity provider. */
export function ProviderButtons({
  providers,
  verb,
  isBusy,
  begin,
}: {
  providers: readonly SignOnProvider[];
  verb: string;
  isBusy: boolean;
  begin: (providerId: string) => void;
}) {
  return providers.map(({ id, name }) => (
    <Button key={id} kind="primary" disabled={isBusy} onClick={() => begin(id)}>
      {`${verb} with ${visibleText(name)}`}
    </Button>
  ));
}
