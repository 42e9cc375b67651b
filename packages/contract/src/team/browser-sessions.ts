/** Signing in a browser by a one-time link, without an API key in it. */
import { z } from 'zod';
import { Timestamp } from '../wire/primitives.ts';

/** How long the code of a link can be used. */
export const signInCodeSeconds = 60;
/** Longest life of a browser session. */
export const browserSessionHours = 8;

/** The text before the code in the fragment of a page's address. Browsers send no fragment to a server. */
export const signInFragment = 'sign-in=';

export const CreateSignInCodeResponse = z
  .object({
    code: z.string().meta({
      description: `Code for the fragment of a page's address: \`/runs/RUN_ID#${signInFragment}CODE\``,
    }),
    expires_at: Timestamp.meta({ description: `${signInCodeSeconds} s after it was made` }),
  })
  .meta({ id: 'CreateSignInCodeResponse', description: 'A code that signs in one browser, once' });
export type CreateSignInCodeResponse = z.infer<typeof CreateSignInCodeResponse>;

export const CreateBrowserSessionRequest = z
  .object({
    code: z
      .string()
      .regex(/^[A-Za-z0-9_-]{43}$/, { error: 'is not a code of a sign-in link' })
      .meta({ description: "Code from the fragment of the page's address" }),
  })
  .meta({ id: 'CreateBrowserSessionRequest', description: 'A code that signs in one browser' });

export const BrowserSession = z
  .object({
    key: z.string().meta({ description: 'For the calls of the page, as `Authorization: Bearer`' }),
    expires_at: Timestamp.meta({
      description: `At the latest ${browserSessionHours} hours after the sign-in, and not after the key that made the link`,
    }),
    display_name: z.string().meta({ description: 'The person for whom the session acts' }),
  })
  .meta({
    id: 'BrowserSession',
    description: "The key of a browser session, which opens only what a run's page needs",
  });
export type BrowserSession = z.infer<typeof BrowserSession>;
