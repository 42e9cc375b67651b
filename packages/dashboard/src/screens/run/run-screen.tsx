import { Page } from '../../frame/page.tsx';

export function RunScreen() {
  return <Page title="RunScreen">{null}</Page>;
}
