import type { GithubApp } from '@runyard/contract/team/github';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQueryClient } from '@tanstack/react-query';
import { useFactories } from '../../api/lists.ts';
import { useClient, useSession } from '../../api/session.ts';
import { P } from '../../parts/blocks.tsx';
import { memberOf, SelectField, TextField } from '../../parts/form.tsx';
import { FormDialog } from '../../parts/form-dialog.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { useCodeHosts } from './code-hosts.tsx';
import { openGithub, postManifest } from './github-return.ts';

/** Creates an App on GitHub from a manifest. */
export function CreateAppDialog({ close }: { close: () => void }) {
  const client = useClient();
  const { team } = useSession();
  return (
    <FormDialog
      title="Create a GitHub App"
      action="Continue on GitHub"
      close={close}
      send={async (data) => {
        const body = { name: '', ...memberOf(data, 'name'), ...memberOf(data, 'organization') };
        const plan = await client.planGithubApp({ body: { ...body, is_public: data.get('is_public') === 'yes' } });
        postManifest(team.uid, plan.url, plan.manifest);
      }}
    >
      <P tone="muted">
        GitHub shows the App with its permissions before it creates it: it reads and answers issues and pull requests,
        clones repositories, and pushes branches of runs. Its key comes here encrypted, and nobody sees it.
      </P>
      <TextField
        label="Name"
        path="name"
        required
        placeholder="acme-runyard"
        hint="People mention it with @ and this name"
      />
      <TextField
        label="Organization that owns it"
        path="organization"
        placeholder="your own account"
        hint="You must be an owner of it"
      />
      <SelectField
        label="Who can install it"
        path="is_public"
        options={[
          ['no', 'only its owner'],
          ['yes', 'every account on GitHub'],
        ]}
        hint="Another account's installation does nothing here until a team claims it"
      />
    </FormDialog>
  );
}

/** Stores an App that exists already. */
export function StoreAppDialog({ close }: { close: () => void }) {
  const client = useClient();
  const queries = useQueryClient();
  const { team } = useSession();
  const credentials = useCodeHosts();
  return (
    <FormDialog
      title="Use an App that exists"
      action="Store"
      close={close}
      send={async (data) => {
        const value = (name: string) => String(data.get(name) ?? '');
        await client.createGithubApp({
          body: {
            credential_id: value('credential_id'),
            client_id: value('client_id'),
            client_secret: value('client_secret'),
            webhook_secret: value('webhook_secret'),
          },
        });
        await queries.invalidateQueries({ queryKey: ['github', team.uid] });
      }}
    >
      <Loaded query={credentials} rows={1}>
        {(list) => {
          const ofApps = list.filter(({ kind, scope }) => kind === 'github_app' && scope === 'team');
          return ofApps.length === 0 ? (
            <P tone="muted">Store the private key of the App in the tab Code hosts first, for the whole team.</P>
          ) : (
            <SelectField
              label="Private key"
              path="credential_id"
              options={ofApps.map(
                ({ id, host, app_id: app }) => [id, visibleText(`App ${app ?? ''} on ${host}`)] as const,
              )}
            />
          );
        }}
      </Loaded>
      <TextField label="Client id" path="client_id" required mono />
      <TextField label="Client secret" path="client_secret" type="password" required mono />
      <TextField
        label="Webhook secret"
        path="webhook_secret"
        type="password"
        required
        mono
        hint="At least 16 characters. Enter the same in the settings of the App"
      />
    </FormDialog>
  );
}

/** Begins the claim of an installation. */
export function ClaimDialog({
  app,
  installationId,
  close,
}: {
  app: GithubApp;
  installationId: string | undefined;
  close: () => void;
}) {
  const client = useClient();
  const { team } = useSession();
  const factories = useFactories();
  return (
    <FormDialog
      title="Claim an installation"
      action="Continue on GitHub"
      close={close}
      send={async (data) => {
        const body = {
          purpose: 'claim' as const,
          installation_id: String(data.get('installation_id') ?? '').trim(),
          factory_uid: String(data.get('factory_uid') ?? ''),
        };
        const { url } = await client.authorizeGithub({ params: { appUid: app.uid }, body });
        openGithub(team.uid, url);
      }}
    >
      <P tone="muted">
        GitHub asks who you are. You must be the account of the installation, or an owner of its organization.
      </P>
      <TextField
        label="Number of the installation"
        path="installation_id"
        defaultValue={installationId ?? ''}
        required
        mono
        hint="The number at the end of the installation's address on GitHub"
      />
      <Loaded query={factories} rows={1}>
        {(list) =>
          list.length === 0 ? (
            <P tone="muted">Create a factory first: its automations decide what the events start.</P>
          ) : (
            <SelectField
              label="Events start the automations of"
              path="factory_uid"
              options={list.map(({ uid, name }) => [uid, visibleText(name)] as const)}
            />
          )
        }
      </Loaded>
    </FormDialog>
  );
}
