import { Page } from '../../frame/page.tsx';

export function NeedsAnswerScreen() {
  return <Page title="NeedsAnswerScreen">{null}</Page>;
}
