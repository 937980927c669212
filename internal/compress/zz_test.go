package compress
import ("testing";"mcpx/internal/tokens";"mcpx/internal/base/wire")
func TestZZ(t *testing.T){
 c:=0
 sessions(t,func(server string,n int,text string){
  if n%4==3||server!="notion-klavis"{return}
  r:=tokens.Count(text); if r<1500||r>3000{return}
  c++; if c%40!=1||c>130{return}
  cp,ok:=wire.Compact(text); if !ok{return}
  s,ok:=asScript(unescapeJSON(cp))
  t.Logf("%d -> %d\n%s\n\n%.3000s\n\n%.3000s",r,tokens.Count(s),server,cp,s)
 })
}
