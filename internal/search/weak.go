package search

// weakWords say how something shall be done, not what: they are rare in
// catalogues, and so would weigh much.
var weakWords = stemSet(`able accurate across actual additional adequate advanced ahead almost already alternative always amazing another appropriate
approximate around aspect attention available average based basic beautiful best better big brief briefly broad careful carefully case certain clear
clearly close common complete completely comprehensive concise concrete consider considering consistent convenient correct correctly
critical cross daily deep deeply depth desired detail detailed different direct directly discussion during easy easily effective efficient eight either emerging enough
ensure entire especially essential estimated exact exactly example excellent existing expected extensive extra fast favorite few field final
fine five focus follow following form four friendly full fully further general goal good great half handle happy hard heavy here high higher highlight
highly hour idea ideal immediate important improve include included including increase individual initial inside insight instead interested interesting internal involve
issue just keep key kind know large last later lead least less level like likely limited little local long look lot low lower main major many maybe mean
meaningful minor minute modern moment month motivation much multiple natural nearly necessary need needed next nice nine normal note numerous obvious off official okay old
overall own particular people perfect perfectly perhaps personal piece please point popular possible possibly potential potentially practical precise
prefer preferred pretty previous primary prior probably problem proper properly purpose quick quickly quite range rather ready real really reason reasonable recently recommended
regarding regular related relevant reliable remaining required respective respectively right rough roughly round safe say second section see seem separate serious seven several short side
significant similar simple simply single six size small smart some soon special specific standard step still strong structure structured subject such suitable sure
ten theme thing think thorough thoroughly those three together topic total towards trouble true try two type typical understand unique upcoming useful usual valid valuable various
way ways week well-formatted whole wide wonder work working world worth would year yet`)
