import { Page } from '../../frame/page.tsx';

export function WebhookScreen() {
  return <Page title="WebhookScreen">{null}</Page>;
}
