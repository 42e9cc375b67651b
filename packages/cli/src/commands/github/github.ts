/** The GitHub Apps of the team. An App is created, and an account linked, on the page of the dashboard, because GitHub asks in a browser. */
import { request } from '../../route-commands/row.ts';

/** The commands of `github`. */
export const github = [
  request('listGithubApps', 'list', 'list the Apps with the installations that the team has claimed', {
    isDefault: true,
    list: {
      of: 'apps',
      columns: [
        { header: 'APP', text: ({ uid }) => uid },
        { header: 'HANDLE', text: ({ handle, host }) => `${handle} on ${host}` },
        {
          header: 'INSTALLATIONS',
          flexible: true,
          text: ({ installations }) =>
            installations.map(({ uid, account }) => `${account.login} ${uid}`).join(', ') || 'none',
        },
        { header: 'YOU', text: ({ linked_account: account }) => account?.login ?? 'not linked' },
        { header: 'PROBLEM', flexible: true, text: ({ poll_problem: problem }) => problem ?? '' },
      ],
      none: 'no GitHub Apps; create one in the dashboard: Settings, GitHub',
    },
  }),
  request('unlinkGithub', 'unlink', 'unlink your account of an App', {
    arguments: [{ usage: '<app-uid>' }],
    lines: (_, { appUid }) => `your account of ${appUid} is unlinked`,
  }),
  request('releaseGithubInstallation', 'release', 'release an installation, so that its events start nothing', {
    arguments: [{ usage: '<installation-uid>' }],
    lines: (_, { installationUid }) => `${installationUid} is released`,
  }),
  request('deleteGithubApp', 'delete', 'delete an App, its installations and the links of people', {
    arguments: [{ usage: '<app-uid>' }],
    lines: (_, { appUid }) => `${appUid} is deleted`,
  }),
];
